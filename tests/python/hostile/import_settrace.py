# Sets a trace function that traces itself, and a profile function.
# expect: ok traced
import inspect


def attack(payload):
    def trace(frame, event, argument):
        return trace

    inspect.sys.settrace(trace)
    inspect.sys.setprofile(lambda *arguments: None)
    return b"traced"
