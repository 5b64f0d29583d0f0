# Adds an audit hook that raises at every event.
# expect: ValueError: sys._getframe
import inspect


def attack(payload):
    def hook(event, arguments):
        raise ValueError(event)

    inspect.sys.addaudithook(hook)
    compile("1", "<x>", "eval")
    return b"hooked"
