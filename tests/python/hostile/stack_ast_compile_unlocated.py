# Compiles a deep syntax tree whose places were set without recursion.
# expect: (RecursionError|MemoryError|Stopped|TypeError)
# limit: 19000000
import ast


def attack(payload):
    place = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}
    tree = ast.Constant(1, **place)
    for _ in range(30_000):
        tree = ast.UnaryOp(ast.USub(), tree, **place)
    return str(eval(compile(ast.Expression(tree), "<x>", "eval"))).encode()
