# Opens a file.
# expect: PermissionError: actors have no file system
def attack(payload):
    return open("/etc/passwd").read().encode()
