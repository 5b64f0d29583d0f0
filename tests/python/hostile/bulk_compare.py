# Compares two equal texts of 8 MB.
# expect: OutOfCycles
# limit: 19000000
def attack(payload):
    one = "a" * 8_000_000
    other = ("b" + one)[1:]
    while True:
        one == other
