# Calls a function with two underscores.
# handler: __attack__
# expect: NoHandler
def __attack__(payload):
    return b"reached"
