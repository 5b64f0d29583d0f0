# Calls a functools.partial.
# expect: NoHandler
import functools

attack = functools.partial(bytes, b"x")
