# Calls a class.
# handler: Attack
# expect: NoHandler: the actor has no handler Attack
class Attack:
    pass
