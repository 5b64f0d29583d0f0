# Gives its exception a traceback with lines that the source lacks.
# expect: ValueError: far
import types


def attack(payload):
    try:
        raise ValueError("far")
    except ValueError as error:
        frame = error.__traceback__.tb_frame
        step = types.TracebackType(None, frame, 0, 2**31 - 1)
        step = types.TracebackType(step, frame, -1, -5)
        raise error.with_traceback(step)
