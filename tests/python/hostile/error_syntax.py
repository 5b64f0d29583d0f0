# Is no Python.
# expect: deploy: SyntaxError
def attack(payload:
    return
