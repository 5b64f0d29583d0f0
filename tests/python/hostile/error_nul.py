# Raises an exception whose text has NUL bytes and control characters.
# expect: ValueError: a
def attack(payload):
    raise ValueError("a\x00b\x07c\x1b]0;title\x07\x1b[2J\x1b[31mred\r\u202edefer")
