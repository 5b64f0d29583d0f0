# Copies 100,000 nested lists.
# expect: RecursionError
import copy


def attack(payload):
    nest = []
    for _ in range(100_000):
        nest = [nest]
    return str(len(copy.deepcopy(nest))).encode()
