# Freezes, unfreezes and collects without end.
# expect: OutOfCycles
import inspect


def attack(payload):
    gc = inspect.sys.modules["gc"]
    gc.set_threshold(1)
    gc.unfreeze()
    while True:
        gc.collect()
