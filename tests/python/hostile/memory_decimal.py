# Computes with a hundred million digits.
# expect: (MemoryError|OutOfCycles|ValueError|InvalidOperation)
import decimal


def attack(payload):
    decimal.getcontext().prec = 100_000_000
    return str(decimal.Decimal(1) / decimal.Decimal(7)).encode()
