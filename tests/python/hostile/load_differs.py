# Tries to be another module when it is loaded ahead: by ids, hashes and addresses of objects.
# expect: ok same
# limit: 19000000
MARK = (id(object()), hash("text"), hash(object()), repr(object()), id(MARK := []))


def attack(payload):
    import pvm_host

    mark = repr(MARK).encode()
    known = pvm_host.get_state(b"mark")
    pvm_host.set_state(b"mark", mark)
    return b"same" if known in (None, mark) else b"differs"
