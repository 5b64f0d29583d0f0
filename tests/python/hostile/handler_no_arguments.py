# Is a handler without parameters.
# expect: TypeError: attack\(\) takes 0 positional arguments but 1 was given
def attack():
    return b"reached"
