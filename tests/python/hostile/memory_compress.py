# Asks for zlib, which is not among the modules.
# expect: deploy: ImportError: actors cannot import zlib
import zlib


def attack(payload):
    return zlib.compress(b"")
