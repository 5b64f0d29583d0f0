# Loops, and catches every exception there is.
# expect: OutOfCycles
def attack(payload):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
