# Imports a name that a module almost has.
# expect: ImportError: cannot import name 'dump_' from 'json'
def attack(payload):
    from json import dump_

    return dump_
