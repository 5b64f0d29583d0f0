# Asks for pickle, which is not among the modules.
# expect: ImportError: actors cannot import pickle
def attack(payload):
    import pickle

    return pickle.dumps(1)
