# Imports threading.
# expect: deploy: ImportError: actors cannot import threading
import threading


def attack(payload):
    return b"1"
