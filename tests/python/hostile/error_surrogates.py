# Raises an exception whose text has lone surrogates.
# expect: ValueError: \\\\?ud800
def attack(payload):
    raise ValueError("\ud800\udfff")
