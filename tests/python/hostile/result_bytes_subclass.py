# Returns bytes with methods of their own.
# expect: ok (true|buffer)
class Bytes(bytes):
    def __len__(self):
        return 7

    def __bytes__(self):
        return b"false"

    def __getitem__(self, place):
        raise KeyboardInterrupt

    def __buffer__(self, flags):
        return memoryview(b"buffer")


def attack(payload):
    return Bytes(b"true")
