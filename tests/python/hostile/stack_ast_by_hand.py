# Builds a syntax tree of 100,000 levels by hand, and compiles it.
# expect: RecursionError
# limit: 19000000
import ast


def attack(payload):
    tree = ast.Constant(1)
    for _ in range(50_000):
        tree = ast.UnaryOp(ast.USub(), tree)
    code = compile(ast.fix_missing_locations(ast.Expression(tree)), "<x>", "eval")
    return str(eval(code)).encode()
