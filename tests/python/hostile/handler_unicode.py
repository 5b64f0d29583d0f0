# Calls a handler whose name is written in Greek.
# handler: ἐπίθεσις
# expect: ok reached
def ἐπίθεσις(payload):
    return b"reached"
