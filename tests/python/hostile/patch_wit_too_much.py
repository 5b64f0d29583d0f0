# Passes 20 MB to the component's imports, round the guest's limit of a megabyte.
# expect: (Stopped|Err|MemoryError)
# limit: 19000000
import pvm_host


def attack(payload):
    pvm_host._wit.keccak256(bytes(20_000_000))
    return b"passed"
