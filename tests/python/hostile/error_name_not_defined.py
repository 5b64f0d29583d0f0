# Uses a name that is almost one of the module's: the interpreter suggests others.
# expect: NameError: name 'attak' is not defined
def attack(payload):
    return attak(payload)
