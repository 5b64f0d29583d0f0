# Asks for help, which imports much.
# expect: (NameError|ModuleNotFoundError|ImportError|Stopped)
def attack(payload):
    help("modules")
