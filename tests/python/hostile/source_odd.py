# Is a template of sources that are odd: long, deep, with NUL bytes, marks and other line ends.
# expect: ok
def attack(payload):
    return b"odd"
