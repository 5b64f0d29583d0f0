"""The modules that actors can import: this list, and nothing else."""

IMPORTABLE = frozenset("""
__future__
abc
ast
base64
binascii
bisect
collections
contextlib
copy
cowboy_sdk
dataclasses
decimal
enum
fractions
functools
hashlib
heapq
inspect
itertools
json
math
numbers
operator
pvm_host
re
reprlib
statistics
string
struct
textwrap
types
typing
unicodedata
""".split())
