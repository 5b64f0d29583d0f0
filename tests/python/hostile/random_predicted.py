# Draws the same randomness twice, and expects the same.
# expect: ok same
import pvm_host


def attack(payload):
    same = pvm_host.randomness(b"a") == pvm_host.randomness(b"a")
    other = pvm_host.randomness(b"a") != pvm_host.randomness(b"b")
    return b"same" if same and other else b"differs"
