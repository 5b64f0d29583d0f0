# Divides large numbers without end.
# expect: OutOfCycles
# limit: 19000000
def attack(payload):
    one, other = 10**40, 10**19 + 7
    while True:
        one % other
        one // other
