# Calls a builtin by a name of the module.
# handler: attack
# expect: NoHandler: the actor has no handler attack
attack = eval
