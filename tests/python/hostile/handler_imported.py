# Calls a function that the module imported.
# handler: dumps
# expect: NoHandler: the actor has no handler dumps
from json import dumps
