# Reads a large list in an order that no cache likes.
# expect: OutOfCycles
# limit: 19000000
def attack(payload):
    kept = list(range(1_000, 1_000_000))
    size, place = len(kept), 1
    while True:
        place = (place * 7_919 + 13) % size
        kept[place]
