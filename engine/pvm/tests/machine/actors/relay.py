import inspect
import json

import pvm_host


def relay(payload):
    """Calls the first target, which calls the next one; the last one does what is asked for."""
    ending, limit, targets = json.loads(payload)
    pvm_host.set_state(b"seen", payload)
    if not targets:
        return globals()[ending](payload)
    rest = json.dumps([ending, limit, targets[1:]]).encode()
    only_the_last = limit if len(targets) == 1 else 0
    try:
        return b">" + pvm_host.call_actor(bytes.fromhex(targets[0]), "relay", rest, only_the_last)
    except pvm_host.HostError as error:
        pvm_host.set_state(b"caught", f"{error.code} {error.name}: {error}".encode())
        return b"caught"


def write(payload):
    return b"written"


def burn(payload):
    while True:
        pass


def overflow(payload):
    """Ends the interpreter's stack inside the component, which Python does not check: a trap."""
    chain = iter([1])
    for _ in range(100_000):
        chain = map(int, chain)
    return str(next(chain)).encode()


def broken(payload):
    """Traps in the middle: the component has no source of randomness."""
    pvm_host.set_state(b"half", b"done")
    return inspect.sys.modules["os"].urandom(8)


def fail(payload):
    raise ValueError("no")


def hoard(payload):
    kept = []
    while True:
        kept.append(bytes(1 << 20))


def hoard_and_catch(payload):
    try:
        hoard(payload)
    except MemoryError:
        return b"caught"
