# Imports ctypes.
# expect: deploy: ImportError: actors cannot import ctypes
import ctypes


def attack(payload):
    return b"1"
