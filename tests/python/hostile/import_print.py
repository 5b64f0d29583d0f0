# Prints much.
# expect: ok printed
def attack(payload):
    print("hello" * 1_000, flush=True)
    return b"printed"
