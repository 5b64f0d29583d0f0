# Raises an exception whose cause and context lead back to itself.
# expect: ValueError: round
def attack(payload):
    one, other = ValueError("round"), ValueError("about")
    one.__cause__ = other
    other.__cause__ = one
    other.__context__ = one
    raise one
