# Calls a builtin.
# handler: print
# expect: NoHandler: the actor has no handler print
def attack(payload):
    return b""
