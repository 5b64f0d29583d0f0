# Raises an exception whose class has a name of a megabyte.
# expect: K+
# limit: 19000000
def attack(payload):
    raise type("K" * 1_000_000, (Exception,), {})("long")
