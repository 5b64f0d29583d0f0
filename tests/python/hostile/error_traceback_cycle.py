# Gives its exception a traceback of 100,000 steps.
# expect: ValueError: long
# limit: 19000000
import types


def attack(payload):
    try:
        raise ValueError("long")
    except ValueError as error:
        step = error.__traceback__
        frame = step.tb_frame
        for _ in range(100_000):
            step = types.TracebackType(step, frame, 0, 1)
        raise error.with_traceback(step)
