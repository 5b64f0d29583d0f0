# Reads JSON in the hook that reads JSON.
# expect: RecursionError
import json


def hook(pairs):
    return json.loads('{"a": 1}', object_pairs_hook=hook)


def attack(payload):
    return hook(None)
