# Writes 100,000 nested lists as JSON.
# expect: RecursionError
import json


def attack(payload):
    nest = []
    for _ in range(100_000):
        nest = [nest]
    return json.dumps(nest).encode()
