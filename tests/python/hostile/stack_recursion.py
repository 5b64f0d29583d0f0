# Calls itself without end.
# expect: RecursionError: maximum recursion depth exceeded
def attack(payload):
    return attack(payload)
