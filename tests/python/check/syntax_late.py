"""An error that is found when the code is made, after the tree."""

total = 0


def add(payload):
    total = 1
    global total  # expect: syntax-error
    return total
