# Puts a function into the module whose __module__ is the actor's, but whose code is not.
# expect: ok "other"
import functools
import json

attack = functools.wraps(lambda payload: None)(lambda payload: json.dumps("other").encode())
