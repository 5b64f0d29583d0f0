# Reads the monotonic clock and a perf counter.
# expect: (KeyError|OSError|RuntimeError|Stopped)
import inspect


def attack(payload):
    time = inspect.sys.modules["time"]
    return f"{time.monotonic()} {time.perf_counter()}".encode()
