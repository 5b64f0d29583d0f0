"""What this devnet does not have: host functions and jobs that it refuses.

Rule: not-on-devnet.
"""

_ABSENT = {
    "cowboy_sdk.fork": "forks of actors",
    "cowboy_sdk.on_event": "event subscriptions",
    "cowboy_sdk.on_stream": "feeds",
    **{
        f"cowboy_sdk.runtime.{name}": what
        for what, names in {
            "forks of actors": "fork_actor",
            "upgrades of actors": "upgrade_self",
            "event subscriptions": "subscribe_event unsubscribe_event force_unsubscribe_event "
            "update_bid topup_subscription",
            "jobs by raw payload": "submit_job",
            "intents": "intent_deposit intent_withdraw intent_broadcast",
            "off-chain images": "offchain_image_initialize offchain_image_update",
        }.items()
        for name in names.split()
    },
}
_ABSENT_JOBS = {"agent", "container"}


def judge_use(module, node, name):
    """Reports a call or a decorator of this dotted name if the devnet refuses it."""
    if name in _ABSENT:
        what = f"this devnet has no {_ABSENT[name]}: {name.rpartition('.')[2]} is refused"
        module.warning("not-on-devnet", node, what, "leave it out on this devnet")


def judge_job(module, node, job):
    """Reports an await of a job of this type if the devnet has no such jobs. Returns whether."""
    if job not in _ABSENT_JOBS:
        return False
    what = f"this devnet has no runner jobs of type `{job}`"
    module.warning("not-on-devnet", node, what, "runner.llm, runner.http or runner.mcp")
    return True
