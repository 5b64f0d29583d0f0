# Calls an actor that never ends, with a limit: the caller goes on.
# expect: ok 1 out_of_gas OutOfCycles: the call used all of its fuel
import pvm_host


def loop(payload):
    while True:
        pass


def attack(payload):
    try:
        return pvm_host.call_actor(payload, "loop", b"", 1_000_000)
    except pvm_host.HostError as error:
        return f"{error.code} {error.name} {error}".encode()
