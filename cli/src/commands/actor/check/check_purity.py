"""Messages and transfers in handlers of pure mode.

The SDK sets the mode around each handler. What a handler calls runs in its mode, unless it is a
handler too. Timers, calls and the jobs of continuations are allowed in every mode.

Rule: impure-send.
"""

import ast

from check_findings import shortened
from check_reach import is_entry, reach

_IMPURE = {
    "cowboy_sdk.send",
    "cowboy_sdk.send.send_raw",
    "cowboy_sdk.runner.dispatch",
    "cowboy_sdk.runner.send_message",
    "cowboy_sdk.runtime.intent_broadcast",
    "cowboy_sdk.runtime.intent_deposit",
    "cowboy_sdk.runtime.intent_withdraw",
    "cowboy_sdk.runtime.send_message",
    "cowboy_sdk.runtime.submit_job",
    "cowboy_sdk.runtime.transfer_balance",
}

# The exception that they raise, which a caller may expect, and its bases.
_REFUSAL = "PurityViolationError"
_KINDS_OF_REFUSAL = {"CowboyError", "Exception", "BaseException"}


def note_send(module, node, name, place):
    """Notes a call that sends, by the called function's dotted name or as a method."""
    if _REFUSAL in place.caught:
        return
    is_caught = not place.caught.isdisjoint(_KINDS_OF_REFUSAL)
    sends = place.function.sends
    if name in _IMPURE:
        sends.append((node, name.rpartition(".")[2], is_caught))
    target = node.func
    if isinstance(target, ast.Attribute) and target.attr == "send":
        if is_reference(module, target.value, place):
            sends.append((node, "send", is_caught))


def is_reference(module, node, place):
    """Whether it is a reference of another actor."""
    if isinstance(node, ast.Name):
        return node.id in place.function.references
    return isinstance(node, ast.Call) and (
        module.names.resolve(node.func, place.scope) == "cowboy_sdk.ActorRef"
    )


def judge_purity(module):
    wrapped = {
        id(function)
        for function in module.handlers.values()
        if function.is_handler and not function.continuation
    }
    pure, free = [], []
    for function in module.handlers.values():
        if id(function) in wrapped and not function.is_deferred:
            pure.append(function)
        elif id(function) in wrapped or function.continuation:
            free.append(function)
    free += [function for function in module.functions.values() if is_entry(function)]

    def is_helper(function):
        return id(function) not in wrapped and not function.continuation

    in_pure = reach(module, pure, is_helper)
    in_free = reach(module, free, is_helper)
    certain = reach(module, pure, is_helper, is_certain=True)
    for function in module.all_functions:
        start = in_pure.get(id(function))
        if start is None:
            continue
        is_certain = id(function) in certain and id(function) not in in_free
        handler = shortened(start.name)
        for node, name, is_caught in function.sends:
            report = module.error if is_certain and not is_caught else module.warning
            what = f"{name} raises in {handler}, a handler of pure mode (E1205)"
            report("impure-send", node, what, f"@deferred on {handler}")
