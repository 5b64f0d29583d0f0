# Calls an actor that never ends, without a limit: the caller is out of fuel, too.
# expect: OutOfCycles
import pvm_host


def loop(payload):
    while True:
        pass


def attack(payload):
    try:
        return pvm_host.call_actor(payload, "loop", b"", 0)
    except BaseException as error:
        return f"caught {error}".encode()
