# Compiles a function whose name and file are hostile, and lets it raise.
# expect: ZeroDivisionError
def attack(payload):
    source = "def f():\n    1 / 0\n"
    names = {}
    exec(compile(source, "<actor>", "exec"), names)
    code = names["f"].__code__
    names["f"].__code__ = code.replace(co_name="x\n\x1b[31m\x00" * 1_000)
    names["f"]()
