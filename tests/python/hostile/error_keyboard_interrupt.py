# Raises KeyboardInterrupt.
# expect: KeyboardInterrupt
def attack(payload):
    raise KeyboardInterrupt
