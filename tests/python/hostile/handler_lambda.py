# Calls a lambda, which is a function of the module.
# expect: ok lambda
attack = lambda payload: b"lambda"
