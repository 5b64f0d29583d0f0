"""Attacks a running devnet with the actors in the folder `hostile`.

    hostile.py --cowboyctl PATH --devnet NAME [names…]

Each file is deployed and called once, unless there is a scene of its name below, for attacks of
several steps. The head of a file says what it tries and which outcome is right:

    # expect: PATTERN    begins the outcome: an error's headline, `deploy: …`, or `ok RESULT`
    # handler: NAME      default `attack`
    # payload: HEX       or `0xHEX * number`, or `text * number`
    # limit: CYCLES      cycles that the call buys, default 8,000,000
    # cells: CELLS       cells that it buys, default 100,000
    # value: AMOUNT      sent with the call, such as 1cby

After each attack the devnet must be well: a block comes within 10 s, all validators run and have
the same block, and the memory of the devnet's process, without pages of files, is back within
264 MB of what it was before the first attack, apart from what an earlier attack left beyond them.
Each line shows the outcome, how long the attack took, the longest time between two blocks, the
processor time of the devnet's process, and its memory at the peak and afterwards, as growth since
the start. The exit code is 1 if anything failed.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.request

FOLDER = pathlib.Path(__file__).parent / "hostile"
# 8 × 16 of them are memory that instances use again and again; the allocator keeps the others.
KEPT_MB = 264
# Seconds within which every validator has a block that one of them has.
CATCH_UP_SECONDS = 60
BLOCK_SECONDS = 30
# Memory that a call used may take a moment to go.
SETTLE_SECONDS = 8
CYCLES = 8_000_000
CELLS = 100_000
CALL_SECONDS = 120


class Failed(Exception):
    """A command of `cowboyctl` failed; the text is an outcome."""


class Devnet:
    def __init__(self, program, name):
        self.program, self.name = program, name
        status = self.json("devnet", "status")
        self.pid = status["pid"]
        self.validators = [validator["name"] for validator in status["validators"]]
        folder = os.environ.get("COWBOYCTL_HOME", os.path.expanduser("~/.local/state/cowboyctl"))
        about = json.loads((pathlib.Path(folder) / name / "devnet.json").read_text())
        self.url = about["rpc_url"]

    def run(self, *arguments):
        """The exit code, and what was printed to both outputs."""
        command = [self.program, "--devnet", self.name, "--output", "json", *arguments]
        done = subprocess.run(command, capture_output=True, timeout=CALL_SECONDS + 60)
        decode = lambda output: output.decode("utf-8", "backslashreplace")
        return done.returncode, decode(done.stdout), decode(done.stderr)

    def json(self, *arguments):
        code, output, errors = self.run(*arguments)
        if code:
            raise Failed(error_of(errors))
        return json.loads(output)

    def head(self):
        with urllib.request.urlopen(self.url + "/v1/chain/head", timeout=30) as answer:
            return json.load(answer)["height"]

    def memory_mb(self):
        """Memory of the devnet's process, without the pages of files: the program, the machine."""
        with open(f"/proc/{self.pid}/status") as status:
            lines = dict(line.split(":", 1) for line in status)
        return int(lines["RssAnon"].split()[0]) / 1024

    def cpu_seconds(self):
        """Processor time of the devnet's process since its start."""
        with open(f"/proc/{self.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def deploy(self, file, *arguments):
        """The address of a new actor."""
        init = re.search(r"^\s*def init\(", pathlib.Path(file).read_text("utf-8"), re.MULTILINE)
        options = [] if init else ["--no-init"]
        command = ("actor", "deploy", str(file), *options, *arguments)
        code, output, errors = self.run(*command)
        if code == 0:
            return json.loads(output)["actor"]
        failed = re.search(r"transaction (0x[0-9a-f]{64}) failed", errors)
        reason = error_of(errors)
        if failed:
            reason = headline(self.json("chain", "tx", failed.group(1)))
        raise Failed("deploy: " + reason)

    def call(self, actor, handler="attack", payload=b"", cycles=CYCLES, cells=CELLS, **options):
        """The outcome of a call that is sent without a trial."""
        name = f"/tmp/hostile-{os.getpid()}-{threading.get_ident()}"
        pathlib.Path(name).write_bytes(payload)
        named = [f"--{option.replace('_', '-')}={value}" for option, value in options.items()]
        command = ["actor", "call", f"--cycles={cycles}", f"--cells={cells}", *named]
        command += [f"--timeout={CALL_SECONDS}s", "--", actor, handler, "@" + name]
        try:
            code, output, errors = self.run(*command)
        finally:
            os.unlink(name)
        return headline(json.loads(output)) if output.strip() else "not sent: " + error_of(errors)

    def wait(self, blocks):
        until = self.head() + blocks
        while self.head() < until:
            time.sleep(0.1)


def error_of(text):
    try:
        return json.loads(text)["error"]["message"]
    except (ValueError, KeyError):
        return text.strip() or "no text"


def headline(receipt):
    """`ok RESULT`, or the first line of the error."""
    if receipt["status"] == "success":
        return "ok " + shown((receipt.get("actor") or {}).get("result"))
    name, message = receipt.get("error"), receipt.get("message") or ""
    text = f"{name}: {message}" if name else message
    return text.split("\n")[0] or receipt["status"]


def shown(result):
    """A result; bytes as text, if they are printable ASCII."""
    if isinstance(result, str) and re.fullmatch("0x([0-9a-f]{2})*", result):
        data = bytes.fromhex(result[2:])
        printable = all(32 <= byte < 127 for byte in data)
        return data.decode() if printable else result
    return result if isinstance(result, str) else json.dumps(result)


class Watch(threading.Thread):
    """Measures the peak of memory and the longest time between two blocks."""

    def __init__(self, devnet):
        super().__init__(daemon=True)
        self.devnet, self.lock = devnet, threading.Lock()
        self.ended, self.error = False, None
        self.begin()

    def begin(self):
        with self.lock:
            self.peak, self.longest, self.seen = 0.0, 0.0, time.monotonic()

    def run(self):
        height = None
        while not self.ended:
            try:
                memory, now = self.devnet.memory_mb(), self.devnet.head()
            except OSError as error:
                self.error = error
                time.sleep(0.2)
                continue
            with self.lock:
                self.peak = max(self.peak, memory)
                self.longest = max(self.longest, time.monotonic() - self.seen)
                if now != height:
                    height, self.seen = now, time.monotonic()
            time.sleep(0.03)


class Attack:
    """A file and what its head says."""

    def __init__(self, file):
        self.file, self.name = file, file.stem
        head = {}
        for line in file.read_text("utf-8").splitlines():
            found = re.match(r"# (expect|handler|payload|limit|cells|value): (.*)", line)
            if found:
                head[found.group(1)] = found.group(2)
        self.expect = head.get("expect", "no `# expect:` in the file")
        self.options = {"handler": head.get("handler", "attack")}
        self.options["payload"] = payload_of(head.get("payload", ""))
        self.options["cycles"] = int(head.get("limit", CYCLES))
        self.options["cells"] = int(head.get("cells", CELLS))
        if "value" in head:
            self.options["value"] = head["value"]

    def outcome(self, devnet):
        scene = SCENES.get(self.name)
        try:
            if scene:
                return scene(devnet, self)
            return devnet.call(devnet.deploy(self.file), **self.options)
        except Failed as failed:
            return str(failed)
        except subprocess.TimeoutExpired:
            return "no answer in time"


def payload_of(text):
    repeated = re.fullmatch(r"(.+) \* (\d+)", text)
    if repeated:
        part, count = repeated.groups()
        data = bytes.fromhex(part[2:]) if part.startswith("0x") else part.encode()
        return data * int(count)
    return bytes.fromhex(text)


def behind_of(devnet, height):
    """The validators that do not run, or are below a height."""
    return [
        f"{one['name']} is {one['status']} at {one['height']}: {one['reason']}"
        for one in devnet.json("devnet", "status")["validators"]
        if one["status"] != "running" or one["height"] < height
    ]


def health(devnet, before_mb):
    """What is wrong with the devnet now, and the growth of its memory."""
    wrong = []
    begun, height = time.monotonic(), devnet.head()
    while devnet.head() <= height:
        if time.monotonic() - begun > BLOCK_SECONDS:
            wrong.append(f"no block within {BLOCK_SECONDS} s")
            break
        time.sleep(0.05)
    begun = time.monotonic()
    # One may be behind for a moment on a busy machine.
    while behind := behind_of(devnet, height):
        if time.monotonic() - begun > CATCH_UP_SECONDS:
            wrong.extend(behind)
            break
        time.sleep(0.05)
    try:
        block = lambda name: devnet.json("--node", name, "chain", "block", str(height))
        blocks = [block(name) for name in devnet.validators]
        if len({(one["hash"], one["state_root"]) for one in blocks}) > 1:
            wrong.append(f"validators differ at height {height}")
    except Failed as failed:
        wrong.append(str(failed))
    begun = time.monotonic()
    while (growth := devnet.memory_mb() - before_mb) > KEPT_MB:
        if time.monotonic() - begun > SETTLE_SECONDS:
            wrong.append(f"{growth:.0f} MB more memory than before the first attack")
            break
        time.sleep(0.2)
    return wrong, growth


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cowboyctl", required=True, help="path of the program")
    parser.add_argument("--devnet", required=True, help="name of a running devnet")
    parser.add_argument("--every", type=int, default=1, help="only each N-th", metavar="N")
    parser.add_argument("names", nargs="*", help="attacks, or beginnings of their names")
    given = parser.parse_args()
    attacks = [Attack(file) for file in sorted(FOLDER.glob("*.py"))]
    wanted = lambda attack: any(attack.name.startswith(name) for name in given.names)
    attacks = [attack for attack in attacks if not given.names or wanted(attack)]
    attacks = attacks[:: given.every]
    devnet = Devnet(given.cowboyctl, given.devnet)
    before_mb = devnet.memory_mb()
    watch = Watch(devnet)
    watch.start()
    failures = []
    slowest, highest = (0, ""), (0, "")
    for attack in attacks:
        watch.begin()
        begun, spent = time.monotonic(), devnet.cpu_seconds()
        outcome = attack.outcome(devnet)
        wrong, growth = health(devnet, before_mb)
        if not re.match(attack.expect, outcome):
            wrong.insert(0, f"expected {attack.expect}")
        longest, peak = watch.longest, watch.peak - before_mb
        slowest, highest = max(slowest, (longest, attack.name)), max(highest, (peak, attack.name))
        text = outcome if len(outcome) < 100 else outcome[:97] + "..."
        text = text.encode("unicode_escape").decode()
        print(
            f"{'FAIL' if wrong else 'ok  '} {attack.name:32} {text}"
            f"  | {time.monotonic() - begun:.1f} s, block {longest:.1f} s,"
            f" cpu {devnet.cpu_seconds() - spent:.1f} s,"
            f" peak {peak:+.0f} MB, after {growth:+.0f} MB",
            *wrong,
            sep="\n       ",
            flush=True,
        )
        if wrong:
            failures.append(attack.name)
        # The attacks that follow are not to blame for it.
        before_mb += max(0, growth - KEPT_MB)
    watch.ended = True
    print(f"{len(attacks)} attacks, {len(failures)} failed: {' '.join(failures) or 'none'}")
    print(f"longest time between blocks {slowest[0]:.1f} s ({slowest[1]})")
    print(f"highest memory {highest[0]:+.0f} MB ({highest[1]}), before {before_mb:.0f} MB")
    return 1 if failures else 0


# Scenes: attacks of several actors or steps. Each returns an outcome.


def cbor(value):
    """Texts, bytes, and maps of few entries as canonical CBOR."""
    if isinstance(value, dict):
        entries = sorted((cbor(key), cbor(one)) for key, one in value.items())
        entries.sort(key=lambda entry: (len(entry[0]), entry[0]))
        return bytes([0xA0 + len(entries)]) + b"".join(key + one for key, one in entries)
    data, major = (value.encode(), 0x60) if isinstance(value, str) else (value, 0x40)
    size = len(data)
    if size < 24:
        return bytes([major + size]) + data
    if size < 256:
        return bytes([major + 24, size]) + data
    return bytes([major + 25]) + size.to_bytes(2, "big") + data


def several(devnet, attack, count):
    """The bytes of the addresses of `count` copies of the attack's actor."""
    return [bytes.fromhex(devnet.deploy(attack.file)[2:]) for _ in range(count)]


def text_of(address):
    return "0x" + address.hex()


def chain_of(devnet, attack, count, last=()):
    """Calls the first of `count` actors; the payload names those that follow."""
    actors = several(devnet, attack, count)
    path = b"".join(actors[1:] + [actors[place] for place in last])
    return devnet.call(text_of(actors[0]), **{**attack.options, "payload": path})


def with_another(devnet, attack):
    """Calls an actor; the payload is the address of a copy of it."""
    return chain_of(devnet, attack, 2)


def then_wait(blocks):
    """Calls an actor once, and watches what becomes of it in the next blocks."""

    def scene(devnet, attack):
        actor = devnet.deploy(attack.file)
        outcome = devnet.call(actor, **attack.options)
        devnet.wait(blocks)
        return outcome

    return scene


def then_keys(blocks):
    """As `then_wait`, and counts the keys of the actor's store afterwards."""

    def scene(devnet, attack):
        actor = devnet.deploy(attack.file)
        outcome = devnet.call(actor, **attack.options)
        devnet.wait(blocks)
        return f"{outcome}, {len(devnet.json('actor', 'show', actor)['state'])} keys"

    return scene


def at_once(works):
    """The results of functions that run at the same time."""
    results = [None] * len(works)

    def run(place, work):
        try:
            results[place] = work()
        except (Failed, OSError, subprocess.SubprocessError) as error:
            results[place] = str(error)

    threads = [threading.Thread(target=run, args=one) for one in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def store_cbor_nested(devnet, attack):
    """Shows the store of the actor."""
    actor = devnet.deploy(attack.file)
    outcome = devnet.call(actor)
    return "ok shown" if devnet.json("actor", "show", actor)["state"] else outcome


def handler_names(devnet, attack):
    """Calls an actor by names of every kind."""
    actor = devnet.deploy(attack.file)
    names = [" attack", "attack ", "attack\n", "a" * 256, "a" * 257, "a" * 10_000]
    names += ["__class__", "__init__", "__builtins__", "__dict__", "_call", "payload", "attack()"]
    names += ["\x1b[2J", "\u202ekcatta", "\U0001f480" * 60, "attack;init", "pvm_host", "../a"]
    for name in names:
        outcome = devnet.call(actor, name)
        if not re.match("NoHandler|HandlerTooLong|UnknownHandler", outcome):
            return f"name {name[:20]!r}: {outcome}"
    return "ok all refused"


def source_odd(devnet, attack):
    """Deploys sources that are odd."""
    body = "def attack(payload):\n    return b'odd'\n"
    filler = "# " + "x" * 97 + "\n"
    cases = [
        ("at the limit", (filler * 700)[: 65_536 - len(body) - 1] + "\n" + body, "ok odd"),
        ("over the limit", filler * 700 + body, "deploy: SourceTooLong"),
        ("a comment only", "# nothing\n", "NoHandler|deploy: "),
        ("a NUL byte", "x = 1\x00\n" + body, "deploy: SyntaxError"),
        ("a byte order mark", "\ufeff" + body, "(ok odd|deploy: SyntaxError)"),
        ("carriage returns", body.replace("\n", "\r"), "ok odd"),
        ("form feeds", "\x0c" + body, "ok odd"),
        ("a declared encoding", "# -*- coding: utf-16 -*-\n" + body, "ok odd"),
        ("an unknown encoding", "# -*- coding: nonsense -*-\n" + body, "ok odd"),
        ("escapes in an error", "\x1b[2J\n", "deploy: SyntaxError"),
        ("a long line in an error", "a" * 30_000 + " b\n", "deploy: SyntaxError"),
        ("nested blocks", nested("if 1:", 150) + body, "deploy: IndentationError"),
        ("nested functions", nested("def f():", 60) + body, "(ok odd|deploy: )"),
        ("a chain of operators", "x = " + "1+" * 30_000 + "1\n" + body, "deploy: |ok odd"),
        ("a chain of calls", "x = lambda: f" + "()" * 30_000 + "\n" + body, "deploy: |ok odd"),
        ("nested f-strings", "x = " + "f'{" * 160 + "1" + "}'" * 160 + "\n", "deploy: "),
        ("many names", "".join(f"a{n}=1\n" for n in range(2_000)) + body, "ok odd"),
        ("a folded power", "x = 10 ** 10 ** 8\n" + body, "deploy: (OutOfCycles|MemoryError)"),
        ("a folded text", "x = 'a' * 10 ** 9\n" + body, "deploy: MemoryError"),
        ("a warning", "x = '\\d'\ny = 1 is 1\n" + body, "ok odd"),
        ("a future", "from __future__ import braces\n", "deploy: SyntaxError"),
        ("a star import", "from cowboy_sdk import *\n" + body, "ok odd"),
        ("the SDK's testing", "import cowboy_sdk.testing\n", "deploy: ModuleNotFoundError"),
    ]
    wrong = []
    for name, source, expected in cases:
        file = pathlib.Path(f"/tmp/hostile-{os.getpid()}.py")
        file.write_bytes(source.encode("utf-8", "surrogatepass"))
        try:
            outcome = devnet.call(devnet.deploy(file))
        except Failed as failed:
            outcome = str(failed)
        finally:
            file.unlink()
        if not re.match(expected, outcome):
            wrong.append(f"{name}: {outcome[:80]}")
    return "; ".join(wrong) or f"ok {len(cases)} sources"


def nested(line, depth):
    lines = [" " * level + line for level in range(depth)]
    return "\n".join([*lines, " " * depth + "pass", ""])


def init_again_in_block(devnet, attack):
    """Calls `init` from another account at once with the deployment, until both share a block."""
    helper = devnet.deploy(attack.file)
    digest = lambda *parts: hash_of(devnet.call(helper, "digest", b"".join(parts)))
    accounts = {one["name"]: one["address"] for one in devnet.json("account", "ls")}
    deployer = bytes.fromhex(accounts["dev-1"][2:])
    code = digest(b"cowboy-python-code/v1", attack.file.read_bytes())
    for _ in range(8):
        salt = os.urandom(8)
        place = (b"salted actor", deployer, bytes([len(salt)]), salt, code)
        address = text_of(digest(*place)[-20:])
        options = (f"--salt=0x{salt.hex()}", "--from=dev-1")
        # At equal prices, what buys more cycles than a deployment comes after it.
        again = {"cycles": 3_000_000, "from": "dev-2"}
        deployed, outcome = at_once([
            lambda: devnet.deploy(attack.file, *options),
            lambda: devnet.call(address, "init", **again),
        ])
        if deployed != address:
            return f"deployed at {deployed}, not {address}"
        if outcome.startswith("ok"):
            return f"init ran again, and its owner is the {devnet.call(address)[3:]}"
        if outcome.startswith("InitOnlyOnce"):
            break
    return devnet.call(address)


def hash_of(outcome):
    return bytes.fromhex(outcome.removeprefix("ok 0x"))


def resumed(devnet, attack, account):
    """Opens a continuation, and lets an account call its second part."""
    actor = devnet.deploy(attack.file)
    opened = devnet.call(actor, "ask", b"\xa0", **money(attack))
    if not opened.startswith("ok"):
        return "not opened: " + opened
    reply = {"cid": open_cid(devnet, actor), "result": "forged", "reply_handler": "ask__resume"}
    return devnet.call(actor, "ask__resume", cbor(reply), **{"from": account})


def money(attack):
    return {"value": attack.options["value"]}


def open_cid(devnet, actor):
    """The id of an actor's open continuation, in hex."""
    prefix = "0x" + b"__continuation:".hex()
    entries = devnet.json("actor", "show", actor)["state"]
    return next(one["key"][len(prefix) :] for one in entries if one["key"].startswith(prefix))


def resume_by_own_message(devnet, attack):
    actor = devnet.deploy(attack.file)
    devnet.call(actor, "ask", b"\xa0", **money(attack))
    outcome = devnet.call(actor)
    devnet.wait(2)
    open_cid(devnet, actor)
    return outcome


def resume_replayed(devnet, attack):
    actor = devnet.deploy(attack.file)
    devnet.call(actor, "ask", b"\xa0", **money(attack))
    scheduled = devnet.call(actor)
    devnet.wait(4)
    return devnet.call(actor, "count") if scheduled == "ok scheduled" else scheduled


def resume_101_open(devnet, attack):
    actor = devnet.deploy(attack.file)
    filled = devnet.call(actor, "fill", **money(attack))
    return devnet.call(actor) if filled == "ok filled" else "not filled: " + filled


def store_scan_large(devnet, attack):
    """Stores 30 large values, one a transaction, and scans them."""
    actor = devnet.deploy(attack.file)
    for number in range(30):
        stored = devnet.call(actor, "fill", bytes([number]), cells=850_000)
        if not stored.startswith("ok"):
            return f"not stored: {stored}"
    return devnet.call(actor, **attack.options)


def message_queue_grows(devnet, attack):
    """Lets many messages wait behind those that never end, then waits until all are gone."""
    actor = devnet.deploy(attack.file)
    stopped = devnet.call(actor, "stop", cycles=2_000_000, **money(attack))
    if not stopped.startswith("ok"):
        return stopped
    for number in range(4):
        outcome = devnet.call(actor, **{**attack.options, "value": "1"})
        if not outcome.startswith("ok"):
            return outcome
    devnet.wait(16)
    return outcome


def load_kept_ahead(devnet, attack):
    """Calls four actors that keep much while loaded; the devnet loads instances ahead."""
    for actor in several(devnet, attack, 4):
        for _ in range(2):
            outcome = devnet.call(text_of(actor), **attack.options)
    devnet.wait(2)
    return outcome


def load_differs(devnet, attack):
    """Calls an actor six times, from instances loaded ahead and not."""
    actor = devnet.deploy(attack.file)
    for _ in range(6):
        outcome = devnet.call(actor)
        if outcome != "ok same":
            break
    return outcome


def tried_at_once(devnet, attack):
    actor = devnet.deploy(attack.file)
    trial = ("actor", "call", actor, "attack", "0x", "--dry-run")
    codes = at_once([lambda: devnet.run(*trial)[0]] * 4)
    return "ok 4 answers" if set(codes) <= {0, 6} else f"codes {codes}"


SCENES = {
    "call_callee_takes_all": with_another,
    "call_callee_takes_its_limit": with_another,
    "call_callee_traps": with_another,
    "call_callee_undone": with_another,
    "call_deep_stacks": lambda devnet, attack: chain_of(devnet, attack, 8),
    "call_depth": lambda devnet, attack: chain_of(devnet, attack, 33),
    "call_each_other": lambda devnet, attack: chain_of(devnet, attack, 2, [0]),
    "call_error_text": with_another,
    "call_handler_names": with_another,
    "call_many": with_another,
    "handler_names": handler_names,
    "init_again_in_block": init_again_in_block,
    "init_by_actor": with_another,
    "load_differs": load_differs,
    "load_kept_ahead": load_kept_ahead,
    "message_breeds": then_wait(15),
    "message_flood_of_the_poor": then_wait(3),
    "message_flood_to_no_actor": then_wait(3),
    "message_large": then_wait(2),
    "message_never_ends": then_wait(6),
    "message_queue_grows": message_queue_grows,
    "message_to_itself": then_wait(8),
    "resume_101_open": resume_101_open,
    "resume_by_own_message": resume_by_own_message,
    "resume_by_owner": lambda devnet, attack: resumed(devnet, attack, "dev-0"),
    "resume_by_stranger": lambda devnet, attack: resumed(devnet, attack, "dev-2"),
    "resume_never_ends": then_wait(35),
    "resume_raises": then_wait(35),
    "resume_replayed": resume_replayed,
    "resume_unknown_cid": then_wait(3),
    "source_odd": source_odd,
    "store_cbor_nested": store_cbor_nested,
    "store_scan_large": store_scan_large,
    "store_undone": then_keys(7),
    "timer_enters_caller": with_another,
    "timer_many": then_wait(12),
    "timer_names_init": then_keys(4),
    "timer_reschedules": then_wait(12),
    "tried_at_once": tried_at_once,
}

if __name__ == "__main__":
    sys.exit(main())
