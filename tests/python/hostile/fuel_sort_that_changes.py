# Sorts a list that changes while it is sorted.
# expect: ValueError: list modified during sort
def attack(payload):
    kept = list(range(1_000))
    kept.sort(key=lambda value: kept.append(value) or value)
    return b"sorted"
