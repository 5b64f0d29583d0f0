# Is tried by four dry runs at once, each of which takes all of the stack that it can get.
# expect: ok 4 answers
# limit: 19000000
def attack(payload):
    nest = ()
    try:
        while True:
            nest = (nest,)
    except MemoryError:
        pass
    nest = None
    return b"freed"
