# Enters the debugger.
# expect: (ModuleNotFoundError|RuntimeWarning|ImportError|ok|Stopped|OSError|EOFError)
def attack(payload):
    breakpoint()
    return b"left"
