# Calls a private function.
# handler: _attack
# expect: NoHandler
def _attack(payload):
    return b"reached"
