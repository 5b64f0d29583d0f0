# Imports socket.
# expect: deploy: ImportError: actors cannot import socket
import socket


def attack(payload):
    return str(socket.socket()).encode()
