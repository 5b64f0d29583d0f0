# Raises in init: nothing is deployed.
# expect: deploy: ValueError: in init
def init(payload):
    raise ValueError("in init")
