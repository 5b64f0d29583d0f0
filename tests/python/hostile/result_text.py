# Returns text.
# expect: TypeError: handler attack returned str, not bytes or None
def attack(payload):
    return "text"
