# Makes a coroutine and never awaits it: the interpreter warns of that.
# expect: ok went on
async def never():
    pass


def attack(payload):
    never()
    return b"went on"
