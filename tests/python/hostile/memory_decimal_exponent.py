# Writes a decimal with a huge exponent in full.
# expect: (MemoryError|OutOfCycles|OverflowError|ValueError|InvalidOperation)
import decimal


def attack(payload):
    return f"{decimal.Decimal('1e999999999'):f}".encode()
