# Opens a file with _io, below the function that the guest replaced.
# expect: (PermissionError|OSError|FileNotFoundError|Stopped)
import inspect


def attack(payload):
    return inspect.sys.modules["_io"].FileIO("/etc/passwd").read()
