"""Reads a module: visits each part of its tree once, in the order of the source.

What is certain at once is reported: imports, unknown names, calls, copies of stored values. The
rest is noted in the function that it is in, for rules that look at whole functions.
"""

import ast

from check_calls import is_draining, judge_call, note_instance
from check_floats import (
    note_division,
    note_exact_annotation,
    note_exact_value,
    note_float_attribute,
    note_float_call,
    note_float_constant,
    note_float_variable,
)
from check_functions import Class, Function, Place
from check_imports import judge_attribute, judge_import
from check_purity import is_reference, note_send
from check_state import (
    note_element_change,
    note_method_change,
    note_own_change,
    note_variable_change,
)
from check_tree import (
    FUNCTIONS,
    all_arguments,
    assignment,
    children_of,
    exception_names,
    parts_outside,
    targets_of,
    without_arguments,
)


def read(module, tree):
    module.names.bind(tree)
    module.code = Function(tree, None)
    todo = [(tree, Place(module.scope, module.code))]
    while todo:
        node, place = todo.pop()
        todo += reversed(_visit(module, node, place))
    module.find_actors()


def _visit(module, node, place):
    """Notes what one node does, and gives its parts with their places."""
    function = place.function
    if isinstance(node, ast.Lambda):
        return _visit_lambda(node, place)
    if isinstance(node, FUNCTIONS):
        return _visit_function(module, node, place)
    if isinstance(node, ast.ClassDef):
        return _visit_class(module, node, place)
    if isinstance(node, (ast.Try, ast.TryStar)):
        return _visit_try(node, place)
    if isinstance(node, ast.Call):
        return _visit_call(module, node, place)
    if isinstance(node, ast.With):
        return _visit_with(module, node, place)
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return _visit_assign(module, node, place)
    if isinstance(node, ast.GeneratorExp):
        return _visit_generator(node, place)
    if isinstance(node, ast.Name):
        _visit_name(module, node, place)
    elif isinstance(node, ast.Attribute):
        _visit_attribute(module, node, place)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        judge_import(module, node, place)
    elif isinstance(node, ast.Constant):
        note_float_constant(module, node, place)
    elif isinstance(node, (ast.BinOp, ast.AugAssign)):
        note_division(module, node, place)
    elif isinstance(node, ast.Subscript):
        note_element_change(module, node, place)
    elif isinstance(node, ast.Await):
        (function.deep_awaits if place.depth else function.awaits).append(node)
    elif isinstance(node, (ast.Yield, ast.YieldFrom)):
        if not place.in_async:
            function.yields.append(node)
    elif isinstance(node, (ast.AsyncFor, ast.AsyncWith)):
        if not place.depth:
            function.asynchronous.append(node)
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp)):
        _note_async(node, place)
    elif isinstance(node, (ast.For, ast.comprehension)):
        node.iter.is_drained = True
    elif isinstance(node, ast.Starred):
        node.value.is_drained = True
    return [(part, place) for part in children_of(node)]


def _visit_lambda(node, place):
    inner = place.but(scope=node.inner, owner=None, depth=place.depth + 1)
    return [(part, place) for part in parts_outside(node)] + [(node.body, inner)]


def _visit_generator(node, place):
    """Visits a generator expression, whose first iterable is evaluated at once."""
    _note_async(node, place)
    is_drained = getattr(node, "is_drained", False)
    inner = place if is_drained else place.but(is_lazy=True)
    first, *others = node.generators
    first.iter.is_drained = is_drained
    parts = [(node.elt, inner), (first.target, inner), (first.iter, place)]
    return parts + [(part, inner) for part in first.ifs + others]


def _note_async(node, place):
    if not place.depth and any(part.is_async for part in node.generators):
        place.function.asynchronous.append(node)


def _visit_function(module, node, place):
    parts = [(part, place) for part in parts_outside(node)]
    if place.function is not module.code:
        _note_annotations(module, node, place)
        is_async = isinstance(node, ast.AsyncFunctionDef)
        inner = place.but(
            scope=node.inner,
            owner=None,
            depth=place.depth + 1,
            in_async=place.in_async or is_async,
            caught=frozenset(),
        )
        return parts + [(part, inner) for part in node.body]
    owner = place.owner
    function = Function(node, owner)
    function.decorators = [
        module.names.resolve(without_arguments(decorator), place.scope)
        for decorator in node.decorator_list
    ]
    module.all_functions.append(function)
    if isinstance(owner, Class):
        owner.functions[node.name] = function
    elif owner is None:
        module.functions[node.name] = function
    inner = Place(node.inner, function)
    _note_annotations(module, node, inner)
    return parts + [(part, inner) for part in node.body]


def _note_annotations(module, node, place):
    for arg in all_arguments(node.args):
        note_exact_annotation(module, arg.arg, arg.annotation, place)


def _visit_class(module, node, place):
    # Only classes at the top of the module can be actors; of others the methods are looked at.
    if place.function is module.code and place.owner is None:
        cls = Class(node)
        module.classes[node.name] = cls
        for part in node.body:
            for target in targets_of(part):
                cls.values.setdefault(target.id, target)
        owner = cls
    else:
        owner = node
    inner = place.but(scope=node.inner, owner=owner)
    parts = [(part, place) for part in parts_outside(node)]
    return parts + [(part, inner) for part in node.body]


def _visit_try(node, place):
    types = [handler.type for handler in node.handlers]
    caught = place.caught | exception_names(types) if types else place.caught
    inside = place.but(caught=caught)
    # A handler of an import's failure is there for machines that have no such module.
    parts = [(part, inside) for part in node.body]
    parts += [(part, inside) for handler in node.handlers for part in handler.body]
    parts += [(handler.type, place) for handler in node.handlers if handler.type is not None]
    return parts + [(part, place) for part in node.orelse + node.finalbody]


def _visit_with(module, node, place):
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call):
            if module.names.resolve(call.func, place.scope) == "contextlib.suppress":
                place = place.but(caught=place.caught | exception_names(call.args))
    return [(part, place) for part in children_of(node)]


def _visit_assign(module, node, place):
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        note_exact_annotation(module, node.target.id, node.annotation, place)
    target, value = assignment(node)
    if target is None:
        return [(part, place) for part in children_of(node)]
    note_exact_value(module, target.id, value, place)
    if is_reference(module, value, place):
        place.function.references.add(target.id)
    return [(target, place), (value, place.but(target=target.id))]


def _visit_name(module, node, place):
    if not isinstance(node.ctx, ast.Load):
        note_variable_change(module, node, place)
    elif place.scope.is_of_module(node.id):
        place.function.uses.add(node.id)
        note_float_variable(module, node, place)


def _visit_attribute(module, node, place):
    function = place.function
    function.attributes.add(node.attr)
    if place.is_self(node.value):
        if isinstance(node.ctx, ast.Load):
            function.own_uses.add(node.attr)
        else:
            note_own_change(node, place)
        return
    if not isinstance(node.ctx, ast.Load):
        return
    name = module.names.resolve(node, place.scope)
    if name is not None:
        note_float_attribute(module, node, name, place)
        judge_attribute(module, node, name, place)


def _visit_call(module, node, place):
    name = module.names.resolve(node.func, place.scope)
    if name is not None:
        judge_call(module, node, name, place)
        note_float_call(module, node, name, place)
    note_send(module, node, name, place)
    note_method_change(module, node, place)
    note_instance(module, node, place)
    if is_draining(node, name):
        for part in node.args:
            part.is_drained = True
    parts = [(node.func, place)] + [(part, place) for part in node.args]
    for_runners = name is not None and name.startswith("cowboy_sdk.runner.")
    for word in node.keywords:
        if for_runners and isinstance(word.value, ast.Name):
            place.function.given.add(word.value.id)
        parts.append((word.value, place.but(quiet=True) if for_runners else place))
    return parts
