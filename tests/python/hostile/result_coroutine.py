# Returns a coroutine.
# expect: TypeError: handler attack returned coroutine
async def attack(payload):
    return b"x"
