# Writes to the interpreter's own standard output.
# expect: (ok|AttributeError|OSError|Stopped)
import inspect


def attack(payload):
    inspect.sys.__stdout__.write("hello\n")
    inspect.sys.__stdout__.flush()
    return b"written"
