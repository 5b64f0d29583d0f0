# Calls init again after the deployment.
# handler: init
# expect: InitOnlyOnce
def init(payload):
    return b"begun"
