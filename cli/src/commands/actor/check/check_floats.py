"""Floating point in functions that handlers reach.

While the module is read, each function gets a list of its floats; `judge_floats` reports those of
functions that are reached. Floats that are given to runners are fine.

Rule: float.
"""

import ast

from check_findings import shortened

# Functions of `math` and `statistics` that give whole numbers for whole numbers, or no numbers.
_EXACT_MATH = set(
    "ceil comb factorial floor gcd isclose isfinite isinf isnan isqrt lcm perm prod sumprod trunc "
    "median_high median_low mode multimode".split()
)
_WHOLE = "integers, in basis points or the smallest unit"
_FLOAT_CALLS = {
    "builtins.float": _WHOLE,
    "cowboy_sdk.SoftFloat": _WHOLE,
    "cowboy_sdk.pvm_random.random": "cowboy_sdk.pvm_random.randrange(n)",
    "cowboy_sdk.pvm_random.uniform": "cowboy_sdk.pvm_random.randint(a, b)",
    "cowboy_sdk.pvm_time.monotonic": "runtime.get_block_height() or pvm_time.time_ms()",
    "cowboy_sdk.pvm_time.time": "runtime.get_block_height() or pvm_time.time_ms()",
}
_EXACT_TYPES = {"decimal.Decimal", "fractions.Fraction"}
# Builtins whose result is exact if an argument is.
_EXACT_FOR_EXACT = {"builtins.abs", "builtins.max", "builtins.min", "builtins.sum"}
# Parts of an operand that are looked at.
_MOST_PARTS = 32


def note_float_constant(module, node, place):
    if type(node.value) in (float, complex):
        what = f"{shortened(repr(node.value))} is a floating-point number"
        _note(module, node, place, what, _WHOLE)


def note_float_variable(module, node, place):
    """Notes the use of a name that means a float, or a function that gives one."""
    if node.id in module.names.rates:
        what = f"{shortened(node.id)} is a floating-point number"
        _note(module, node, place, what, _WHOLE)
    else:
        name = module.names.resolve(node, place.scope)
        if name is not None:
            note_float_attribute(module, node, name, place)


def note_division(module, node, place):
    """Notes `/` and `/=`."""
    if isinstance(node.op, ast.Div):
        _note(module, node, place, "`/` gives a floating-point number", "`//`")


def note_float_attribute(module, node, name, place):
    owner, _, attribute = name.rpartition(".")
    if owner in ("math", "statistics") and attribute not in _EXACT_MATH:
        _note(module, node, place, f"{name} is floating point", "whole numbers, math.isqrt")


def note_float_call(module, node, name, place):
    if name in _FLOAT_CALLS:
        what = f"{name.rpartition('.')[2]}() gives a floating-point number"
        _note(module, node, place, what, _FLOAT_CALLS[name])


def _note(module, node, place, what, instead):
    if not place.quiet and place.function is not module.code:
        place.function.floats.append((node, place, what, instead))


def note_exact_value(module, variable, value, place):
    """Notes a variable that gets a decimal or a fraction."""
    if _is_exact(module, value, place):
        place.function.exact.add(variable)


def note_exact_annotation(module, variable, annotation, place):
    """Notes a variable or a parameter that is said to be a decimal or a fraction."""
    if module.names.resolve(annotation, place.scope) in _EXACT_TYPES:
        place.function.exact.add(variable)


def _is_exact(module, node, place):
    """Whether an operand is a decimal or a fraction, as far as can be seen."""
    todo = [node]
    for _ in range(_MOST_PARTS):
        if not todo:
            break
        node = todo.pop()
        if isinstance(node, ast.Name):
            is_global = place.scope.is_of_module(node.id)
            if node.id in (module.code if is_global else place.function).exact:
                return True
        elif isinstance(node, ast.Call):
            name = module.names.resolve(node.func, place.scope)
            if name in _EXACT_TYPES:
                return True
            if name in _EXACT_FOR_EXACT:
                todo += node.args[:_MOST_PARTS]
            elif isinstance(node.func, ast.Attribute):
                # Such as `price.quantize(CENT)`.
                todo.append(node.func.value)
        elif isinstance(node, ast.UnaryOp):
            todo.append(node.operand)
        elif isinstance(node, (ast.BinOp, ast.AugAssign)):
            left = node.left if isinstance(node, ast.BinOp) else node.target
            right = node.right if isinstance(node, ast.BinOp) else node.value
            todo += [left, right]
        elif isinstance(node, ast.IfExp):
            todo += [node.orelse, node.body]
    return False


def judge_floats(module, function):
    line = None
    for node, place, what, instead in function.floats:
        # One for each line, because a formula is full of them.
        if node.lineno == line:
            continue
        if place.target is not None and place.target in function.given:
            continue
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and _is_exact(module, node, place):
            continue
        line = node.lineno
        fix = f"use {instead}; a float can be stored if it is finite"
        module.warning("float", node, f"{what}, which rounds", fix)
