# Calls an actor that ends in a trap, with a limit.
# expect: ok 6 Stopped: the machine stopped the call
import inspect

import pvm_host


def trap(payload):
    inspect.sys.modules["os"].abort()


def attack(payload):
    try:
        return pvm_host.call_actor(payload, "trap", b"", 1_000_000)
    except pvm_host.HostError as error:
        return f"{error.code} {error}".encode()
