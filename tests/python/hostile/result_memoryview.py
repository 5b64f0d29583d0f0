# Returns a memoryview.
# expect: TypeError: handler attack returned memoryview
def attack(payload):
    return memoryview(b"x")
