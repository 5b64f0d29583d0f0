# Makes classes without end.
# expect: (MemoryError|OutOfCycles)
# limit: 19000000
def attack(payload):
    kept = []
    while True:
        kept.append(type("Kind%d" % len(kept), (), {}))
