# Takes the random module from sys.modules: its state is the snapshot's, the same in each call.
# expect: ok 0\.\d+
import inspect


def attack(payload):
    return str(inspect.sys.modules["random"].random()).encode()
