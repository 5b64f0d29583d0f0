"""Scenarios of actors, on a devnet and on the SDK's simulated chain: both must agree.

    COWBOYCTL=… COWBOYCTL_DEVNET=… python scenarios.py [NAME…]

The devnet runs already. Its runners are answered by hand, and its blocks are short:

    {chain: {block_time: 100ms}, validators: 1,
     runners: [{name: hand, max_concurrent_jobs: 32, executors: {by_hand: true}}]}

Each scenario is a function of a chain. Its operations return what they came to, and raise nothing
that an actor raised. Stores must be equal byte for byte, and so must events, jobs, and the outcome
of each operation. One line per scenario; the exit code is 1 if one differs.
"""

import argparse
import importlib
import sys
import tempfile
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE / "actors"), str(HERE.parents[1] / "cli/src/commands/actor")]

from cowboy_sdk import codec, mock_host, recipes

sys.modules["pvm_host"] = mock_host

import world

SCENARIOS = {}
# A secret key's public key, a message and its signature: RFC 8032, section 7.1, test 3.
KEY = bytes.fromhex("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025")
MESSAGE = bytes.fromhex("af82")
SIGNATURE = bytes.fromhex(
    "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
    "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
)
# A page that no job fetches, because jobs are answered by hand.
PAGE = "https://example.com/page"
ALICE, BOB = b"\xa1" * 20, b"\xb0" * 20
# Blocks after which a timer is due that must not fire before the scenario lets it.
LATER = 60


def scenario(actor):
    """Declares a scenario of the actor class in a module."""

    def declare(function):
        SCENARIOS[function.__name__] = (lambda folder: actor_of(actor), function)
        return function

    return declare


def actor_of(name):
    """The only actor class of a module."""
    module = importlib.import_module(name)
    own = (value for value in vars(module).values() if isinstance(value, type))
    (actor,) = (a for a in own if a.__module__ == name and vars(a).get("_is_cowboy_actor"))
    return actor


def cbor(value):
    return codec.encode(value)


# Storage, codecs, permissions.


@scenario("archive")
def archive(chain):
    chain.call("init", b"{}")
    for title in ("one", "zwei", "三"):
        note = {"title": title, "stars": len(title), "weight": -0.5, "tags": [title, None]}
        chain.call("add", cbor(note))
    chain.call("read", cbor(2))
    chain.call("read", cbor(9))
    chain.call("describe", b'{"limit": 2}')
    chain.call("describe", b'{"limit": NaN}')
    chain.call("keep", bytes(range(256)))
    chain.call("keep", b"\x01")
    chain.call("forget", cbor(1))
    chain.call("forget", cbor(1))
    chain.call("add", b"")
    chain.call("add", b"\xff")
    chain.call("missing")


@scenario("archive")
def values(chain):
    """Every kind of value, in and out."""
    chain.call("init", b"{}")
    for value in (
        None, True, 0, -1, 23, 24, 255, 65_536, 2**53 + 1, 2**64, -(2**64) - 1, 2**200, 1.5, -0.0,
        1e300, "", "text", "ä\n\0", b"", b"\0", b"0x00", [], [[], {}], {"b": 1, "a": 2, "aa": 3},
        {1: "one", -1: "minus", "1": "text"}, [1.0, 1], {"deep": [{"er": [None, b"\xff"]}]},
    ):
        chain.call("all_kinds", cbor(value))
    for payload in (b"\x18\x01", b"\xfb\x7f\xf8" + bytes(6), b"\xa2\x61\x61\x01\x61\x61\x02",
                    b"\x9f\xff", b"\xc2\x40", b"\x81" * 20 + b"\x80", b"\x61\xff", b"\x00\x00"):
        chain.call("all_kinds", payload)


@scenario("archive")
def failures(chain):
    chain.call("init", b"")
    for which in (
        "reserved", "set", "half", "assert", "stop", "text", "none", "type", "other",
    ):
        chain.call("break_rule", cbor(which))
    chain.call("read", cbor("not a number"))


@scenario("archive")
def json_values(chain):
    chain.call("init", b"{}")
    for payload in (
        b"1", b"-7", b"1.0", b"1e16", b"1e-7", b"0.1", b"123456789012345678901234567890",
        b'"\\u00e4\\n"', '"ä三"'.encode(), b"[ ]", b'{"b": 1, "a": [true, null, {}]}',
        b'{"a": 1, "a": 2}', b"1e999", b"-0.0", b"nul", b"\xff", b'"\\ud800"', b"[" * 200,
    ):
        chain.call("echo", payload)


@scenario("archive")
def sizes(chain):
    """Keys up to 64 bytes are found by prefixes; values have at least 64 KiB."""
    chain.call("init", b"{}")
    for size in (63, 64):
        chain.call("stretch", cbor(size))
    chain.call("fill", cbor(65_536 - 16))


@scenario("archive")
def long_keys(chain):
    """A key of more than 64 bytes is kept, but no prefix finds it."""
    chain.call("init", b"{}")
    for size in (64, 65, 200):
        chain.call("stretch", cbor(size))


@scenario("club")
def permissions(chain):
    chain.set_sender(ALICE)
    chain.call("init", b"\x00")
    chain.call("admit", cbor(chain.address_of(BOB)))
    chain.call("enter")
    chain.call("clean")
    chain.call("visit")
    chain.call("hidden")
    chain.call("_check", cbor(b""))
    chain.set_sender(BOB)
    chain.call("admit", cbor(b""))
    chain.call("enter")


@scenario("market")
def loops(chain):
    for price, amount in ((5, 1), (3, 2), (4, 1), (9, 9)):
        chain.call("offer", cbor([price, amount]))
    chain.call("buy", cbor(3))
    chain.call("buy", cbor(5))
    for price in (1, 2, 3):
        chain.call("offer", cbor([price, 1]))
    chain.call("buy", cbor(100))
    chain.call("offer", cbor(["text", 1]))


# Actors with each other.


@scenario("courier")
def messages(chain):
    other = chain.another(actor_of("courier"))
    other.call("start", cbor({"to": b"\x05" * 20, "text": "to no actor", "left": 0}))
    letter = {"to": other.actor_address, "text": "hi", "left": 3}
    chain.call("start", cbor(letter))
    chain.advance_block(8)
    chain.call("start", cbor({**letter, "text": "lost"}))
    chain.advance_block(3)
    chain.call("eager", cbor(letter))
    chain.call("start", cbor({**letter, "to": b"short"}))


@scenario("desk")
def calls(chain):
    market = chain.another(actor_of("market"))
    market.call("offer", cbor([7, 1]))
    chain.call("trust", cbor(market.actor_address))
    chain.call("ask", cbor("tea"))
    chain.call("ask_twice", cbor("tea"))
    chain.call("ask_nowhere", cbor("tea"))
    chain.call("ask_myself", cbor("tea"))
    chain.call("ask_without_limit", cbor("tea"))


@scenario("desk")
def nested_effects(chain):
    market = chain.another(actor_of("market"))
    market.call("offer", cbor([7, 1]))
    chain.call("trust", cbor(market.actor_address))
    chain.call("provoke", cbor(LATER))
    market.advance_block(LATER + 5)


@scenario("courier")
def twin_messages(chain):
    """Only the chain knows the hash of a message, so it is only told whether two differ."""
    other = chain.another(actor_of("courier"))
    other.call("eager", b"")
    chain.call("send_twice", cbor({"to": other.actor_address}))
    chain.advance_block(5)


@scenario("desk")
def usual_calls(chain):
    """A call through a reference, with the SDK's own limit of cycles."""
    market = chain.another(actor_of("market"))
    market.call("offer", cbor([7, 1]))
    chain.call("trust", cbor(market.actor_address))
    chain.call("ask_as_usual", cbor("tea"))


@scenario("hub")
def hub(chain):
    market = chain.another(actor_of("market"))
    market.call("offer", cbor([7, 1]))
    for handler in ("quote", "fail", "missing"):
        order = {"topic": "price", "who": market.actor_address, "handler": handler}
        chain.call("join", cbor(order))
    chain.call("publish", cbor({"topic": "price", "payload": cbor(["hub"])}))
    chain.call("leave", cbor(order))
    chain.call("leave", cbor(order))
    chain.call("publish", cbor({"topic": "none", "payload": b""}))


@scenario("rare")
def absent(chain):
    for what in ("fork", "upgrade", "subscribe", "job", "deposit", "image"):
        chain.call("attempt", cbor(what))


# Timers and events.


@scenario("alarm")
def timers(chain):
    chain.call("set_plain", cbor(LATER))
    chain.call("set_with_terms", cbor(LATER + 1))
    chain.call("extend", cbor(LATER + 100))
    chain.advance_block(LATER + 5)
    chain.call("set_plain", cbor(LATER))
    chain.call("stop")
    chain.advance_block(LATER + 5)
    chain.call("set_late")
    chain.call("ring")


@scenario("alarm")
def failing_timer(chain):
    chain.call("set_failing", cbor(LATER))
    chain.call("set_failing", cbor(0))
    chain.advance_block(LATER + 5)
    chain.advance_block(LATER + 5)


@scenario("alarm")
def named_timers(chain):
    chain.call("set_named", cbor(LATER))
    chain.advance_block(LATER + 5)


@scenario("alarm")
def intervals(chain):
    chain.call("set_interval", cbor(LATER))
    chain.advance_block(4 * LATER)


@scenario("beacon")
def events(chain):
    chain.call("flash", cbor(3))
    chain.call("flash_often", cbor(["a", "b", ""]))
    chain.call("flash_raw", b"\x00\xffraw")
    chain.call("flash_raw", b"")
    chain.call("flash_and_fail")
    chain.call("flash_often", cbor(['{"json": 1}']))
    chain.call("look")


# Jobs.


@scenario("analyst")
def one_await(chain):
    chain.call("ask", cbor("Why?"))
    chain.reply("Because.")
    chain.call("ask", cbor("Really?"))
    chain.reply("Ja – \"sicher\"\n")
    chain.call("ask", cbor(7))


@scenario("researcher")
def three_awaits(chain):
    chain.call("research", cbor("rivers"))
    chain.reply("Look at maps")
    chain.reply("They flow")
    chain.reply("They do")


@scenario("analyst")
def guards(chain):
    chain.call("set_budget", cbor(1))
    chain.call("guarded", cbor("spend?"))
    chain.reply("yes")
    chain.call("guarded", cbor("again?"))
    chain.call("set_budget", cbor(2))
    chain.reply("no")
    chain.call("broken", cbor("this"))
    chain.reply("that")


@scenario("analyst")
def failed_job(chain):
    chain.call("hopeless", cbor("anyone?"))
    chain.fail()


@scenario("agent")
def agent(chain):
    chain.call("greet", cbor("Ada"))
    chain.reply("Good day, Ada")
    chain.call("judge", cbor("a case"))
    chain.reply("guilty")
    chain.reply("innocent")
    chain.call("begin", cbor(LATER))
    chain.advance_block(LATER + 5)


@scenario("fetcher")
def pages(chain):
    chain.call("fetch", cbor(PAGE))
    chain.reply("a page")
    chain.call("post", cbor(PAGE))
    chain.reply('{"ok": true}')


@scenario("fetcher")
def tools(chain):
    chain.call("use_tool", cbor("monday"))
    chain.reply("none")


@scenario("classifier")
def structured(chain):
    chain.call("classify", cbor("a letter"))
    chain.reply(world.testing.llm_value({"label": "letter", "sure": True}))
    chain.call("classify", cbor("noise"))
    chain.reply(world.testing.llm_failure("invalid_structured_output"))
    chain.call("classify", cbor("a riddle"))
    chain.fail()


@scenario("crowd")
def task_group(chain):
    chain.call("poll", cbor(["One?", "Two?"]))
    chain.reply("second")


# The rest of the SDK.


@scenario("dice")
def randomness(chain):
    """The numbers are the chain's secret, so keys that begin with `random:` are not compared."""
    chain.call("roll", cbor(5))
    chain.call("draw", cbor(["a", "b", "c"]))


@scenario("signer")
def signatures(chain):
    chain.set_sender(ALICE)
    order = {"message": MESSAGE, "signature": SIGNATURE}
    chain.call("submit", cbor(order))
    chain.call("set_key", cbor(KEY))
    chain.call("submit", cbor(order))
    chain.call("submit", cbor({**order, "message": b"another"}))
    chain.call("verify", cbor({**order, "key": KEY}))
    chain.call("verify", cbor({**order, "key": b"\x01" + bytes(31)}))
    chain.call("verify", cbor({**order, "key": b"short"}))
    chain.set_sender(BOB)
    chain.call("set_key", cbor(bytes(32)))


@scenario("tutor")
def paid_per_call(chain):
    chain.set_sender(ALICE)
    hire = {"id": 1, "hirer": chain.address_of(BOB), "version": 1}
    chain.call("register_hire", cbor({**hire, "units": [["call", 5], ["word", 1]]}))
    chain.call("teach", cbor({"id": 1, "text": "not the hirer"}))
    chain.set_sender(BOB)
    for text in ("one lesson", "two", "three"):
        chain.call("teach", cbor({"id": 1, "text": text}))
    chain.set_sender(ALICE)
    chain.call("record_settlement", cbor({"id": 1, "total": "7", "counts": [1, 2]}))
    chain.call("block_hire", cbor(1))


@scenario("vault")
def locks_and_money(chain):
    chain.call("withdraw", cbor(3))
    chain.call("open_twice", cbor(1))
    chain.call("guard", cbor(b"value"))
    chain.call("pay", cbor({"to": ALICE, "wei": 1_000}))
    chain.call("pay_in_pure", cbor({"to": ALICE, "wei": 1}))


@scenario("mint")
def tokens(chain):
    """The mock has no tokens, so the world supplies them by the chain's rule."""
    chain.call("create", cbor(1_000))
    chain.call("pay", cbor({"to": ALICE, "amount": 300}))
    chain.call("pay", cbor({"to": ALICE, "amount": 3_000}))
    chain.call("change_supply", cbor(500))
    chain.call("change_supply", cbor(5_000))
    chain.call("change_supply", cbor(-100))
    chain.call("approve", cbor({"spender": BOB, "amount": 2**100}))
    chain.call("take", cbor({"to": BOB, "amount": 7}))
    chain.call("take", cbor({"to": BOB, "amount": 2**90}))


@scenario("staker")
def delegation(chain):
    chain.call("plan", cbor({"runner": ALICE, "amount": 5}))
    chain.call("plan", cbor({"runner": b"short", "amount": 5}))


# The SDK's recipes, as they are and with their handlers opened to everyone.

RECIPES = {
    "minimal_actor": [("init", b"{}"), ("increment", b""), ("increment", b"")],
    "public_handler": [("balance", b"")],
    "actor_to_actor_call": [("quote", b"")],
    "runner_continuation": [("analyze", b"text")],
    "timer": [("start", b""), ("on_tick", b"")],
    "emit_event": [("update", b"")],
    "on_event_hook": [("init", b"{}"), ("on_price", b"1")],
    "reentrancy_guard": [("withdraw", b"")],
}


def recipe(name, opened):
    title = f"recipe_{name}" + ("_opened" if opened else "")

    def make(folder):
        text = recipes.get(name)
        if opened:
            lines = []
            for line in text.splitlines():
                if line.startswith("    def ") and not lines[-1].startswith("    @public"):
                    lines.append("    @public")
                lines.append(line)
            text = "from cowboy_sdk import public\n" + "\n".join(lines) + "\n"
        (Path(folder) / f"{title}.py").write_text(text)
        return actor_of(title)

    def play(chain):
        for handler, payload in RECIPES.get(name, []):
            chain.call(handler, payload)
        if name == "timer":
            chain.advance_block(12)

    SCENARIOS[title] = (make, play)


for known in recipes.names():
    recipe(known, False)
    recipe(known, True)


def play(name, folder):
    """The first difference between the devnet and the simulated chain, or None."""
    make, function = SCENARIOS[name]
    actor = make(folder)
    real = world.Devnet()
    function(real.chain(actor))
    real.end()
    mock = world.Mock(real)
    function(mock.chain(actor))
    return world.first_difference(real, mock)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios; all by default")
    parser.add_argument("--every", type=int, default=1, help="only each N-th", metavar="N")
    parser.add_argument("--list", action="store_true", help="only list them")
    parser.add_argument("--trace", action="store_true", help="show where a scenario failed")
    arguments = parser.parse_args()
    names = arguments.names or list(SCENARIOS)[:: arguments.every]
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        parser.error(f"there is no scenario {unknown[0]}; --list lists them")
    if arguments.list:
        print("\n".join(names))
        return 0
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        for name in names:
            try:
                difference = play(name, folder)
            except Exception as error:
                if arguments.trace:
                    traceback.print_exc()
                difference = f"{type(error).__name__}: {error}"
            failed |= difference is not None
            print(f"ok {name}" if difference is None else f"FAIL {name}: {difference}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
