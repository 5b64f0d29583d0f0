# Raises an exception with escapes while the module is loaded.
# expect: deploy: ValueError: at load
raise ValueError("at load\x1b[31m")
