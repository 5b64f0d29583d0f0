# Asserts with an object whose text is raised.
# expect: AssertionError
def attack(payload):
    assert False, object
