# Raises GeneratorExit and StopIteration out of the handler.
# expect: GeneratorExit
def attack(payload):
    raise GeneratorExit
