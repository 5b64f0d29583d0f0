# Calls a handler by a name that only looks like its own: a Cyrillic a.
# handler: аttack
# expect: NoHandler
def attack(payload):
    return b"reached"
