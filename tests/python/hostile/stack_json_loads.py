# Reads 100,000 nested lists of JSON.
# expect: RecursionError
import json


def attack(payload):
    return json.loads("[" * 100_000)
