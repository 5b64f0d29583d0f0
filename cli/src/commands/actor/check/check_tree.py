"""The syntax tree: which parts a node has, and what it is called.

Annotations and the values of type aliases are no parts, because they are not run. Walks use a list
as their stack, because the machine allows 256 calls inside each other.
"""

import ast

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
STRINGS = (str, bytes)
# Steps that an alias is followed.
FOLLOWED = 8

# Attributes of the longest name that has a meaning: `cowboy_sdk.runner.continuation`.
_LONGEST_CHAIN = 4


def is_constant(node, kinds=object):
    return isinstance(node, ast.Constant) and isinstance(node.value, kinds)


def without_arguments(node):
    """A decorator without its arguments."""
    return node.func if isinstance(node, ast.Call) else node


def last_part(node):
    """The last part of a dotted name, or None."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def dotted_parts(node):
    """The parts of a dotted name, or None for all other expressions."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
        if len(parts) == _LONGEST_CHAIN:
            return None
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else None


def exception_names(types):
    """The names of the exceptions that are caught."""
    names = set()
    for node in types:
        kinds = node.elts if isinstance(node, ast.Tuple) else [node]
        names.update("BaseException" if kind is None else last_part(kind) or "" for kind in kinds)
    return names


def all_arguments(args):
    rest = [args.vararg, args.kwarg]
    return args.posonlyargs + args.args + args.kwonlyargs + [arg for arg in rest if arg is not None]


def parts_outside(node):
    """The parts of a function or class that run when it is defined, without annotations."""
    parts = list(getattr(node, "decorator_list", []))
    if isinstance(node, ast.ClassDef):
        return parts + node.bases + [word.value for word in node.keywords]
    defaults = node.args.defaults + [part for part in node.args.kw_defaults if part is not None]
    return parts + defaults


def assignment(node):
    """The name and the value of an assignment to one name, or None and None."""
    target = None
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        target = node.target
    return (target, node.value) if isinstance(target, ast.Name) else (None, None)


def targets_of(node):
    """The names that a statement assigns to."""
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    else:
        targets = []
    return [target for target in targets if isinstance(target, ast.Name)]


def children_of(node):
    """The parts of a node other than a function or a class, without what never runs."""
    value = _known_value(node.test) if isinstance(node, ast.If) else None
    if value is not None:
        return node.body if value else node.orelse
    if isinstance(node, ast.AnnAssign):
        return [part for part in (node.target, node.value) if part is not None]
    if isinstance(node, ast.TypeAlias):
        return [node.name]
    return list(ast.iter_child_nodes(node))


def walk(parts):
    """All nodes of these parts in the order of the source, without what is inside functions."""
    todo = list(reversed(parts))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            todo += reversed(children_of(node))


def _known_value(test):
    """What a condition always is in the machine, or None: `TYPE_CHECKING` is false."""
    is_negated = False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        is_negated, test = not is_negated, test.operand
    if isinstance(test, ast.Constant):
        return bool(test.value) != is_negated
    if last_part(test) == "TYPE_CHECKING" or _is_main(test):
        return is_negated
    return None


def _is_main(test):
    """Whether a condition is `__name__ == "__main__"`."""
    if not isinstance(test, ast.Compare):
        return False
    sides = [test.left, *test.comparators]
    return (
        len(sides) == 2
        and isinstance(test.ops[0], ast.Eq)
        and any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
        and any(is_constant(side, str) for side in sides)
    )
