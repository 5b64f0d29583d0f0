# Loops over more than it may, by the SDK's own range.
# expect: LoopBoundExceeded
from cowboy_sdk import BoundedRange, bounded_loop


@bounded_loop(max_iterations=10)
def loop(items):
    for _ in BoundedRange(items):
        pass


def attack(payload):
    loop(100)
    return b"looped"
