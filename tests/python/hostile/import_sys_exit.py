# Leaves by SystemExit.
# expect: SystemExit: 1
import inspect


def attack(payload):
    inspect.sys.exit(1)
