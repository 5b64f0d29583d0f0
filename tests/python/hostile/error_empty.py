# Raises an exception without text.
# expect: ValueError: ?$
def attack(payload):
    raise ValueError
