# Calls a private function whose name ends like that of a continuation.
# handler: __x__resume
# expect: NoHandler
def __x__resume(payload):
    return b"reached"
