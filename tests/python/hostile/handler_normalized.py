# Calls a handler by a name that Python would normalize to its own.
# handler: ｆｕｌｌ
# expect: NoHandler
def full(payload):
    return b"reached"
