# Calls an actor whose error is hostile, and shows what arrives.
# expect: ok 6 ValueError: e+$
# limit: 19000000
import pvm_host


def fail(payload):
    raise ValueError("e" * 10_000)


def attack(payload):
    try:
        pvm_host.call_actor(payload, "fail", b"", 0)
    except pvm_host.HostError as error:
        return f"{error.code} {error}"[:80].encode()
