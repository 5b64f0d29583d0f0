# Keeps large buffers in an exception's arguments and frames, and lets it out.
# expect: (ValueError: |MemoryError|Stopped)
# limit: 19000000
def attack(payload):
    kept = bytearray(30 << 20)
    raise ValueError(kept)
