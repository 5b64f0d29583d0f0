# Raises BaseException itself.
# expect: BaseException: base
def attack(payload):
    raise BaseException("base")
