# Loops while the module is loaded.
# expect: deploy: OutOfCycles
while True:
    pass
