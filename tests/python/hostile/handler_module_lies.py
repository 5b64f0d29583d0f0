# Makes an imported function its own by setting its __module__, and lets it be called.
# handler: dedent
# expect: TypeError: expected str object, not 'bytes'
from textwrap import dedent

dedent.__module__ = __name__
