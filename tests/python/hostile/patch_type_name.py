# Gives its exception's class a name that is no text.
# expect: ValueError: type name must not contain null characters
def attack(payload):
    kind = type("Odd\x00\x1b[31m<b>", (Exception,), {})
    raise kind("odd")
