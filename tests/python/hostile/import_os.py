# Imports os.
# expect: deploy: ImportError: actors cannot import os
import os


def attack(payload):
    return str(os.listdir("/")).encode()
