# Raises an exception whose text continues as if it were another receipt.
# expect: ValueError: one
def attack(payload):
    raise ValueError("one\n  at <actor>:1 in good: pass\nstatus   success\nresult   paid")
