"""Calls inside the module: which functions reach which."""

from check_functions import Class


def reach(module, starts, passes=lambda function: True, is_certain=False):
    """All functions that `starts` reach, by `id`, each with the start that reached it.

    A function that uses a class may call all its methods. With `is_certain` it calls only those
    whose names it uses too, and the special ones.
    """
    found, entered = {}, set()
    todo = [(function, function) for function in starts]
    while todo:
        function, start = todo.pop()
        if id(function) in found:
            continue
        found[id(function)] = start
        for called in _called_by(module, function, entered, is_certain):
            if passes(called):
                todo.append((called, start))
    return found


def reachable(module):
    """The functions that the chain can reach, in the order of the source."""
    starts = [
        function
        for function in module.handlers.values()
        if function.is_handler or function.continuation
    ]
    starts += [function for function in module.functions.values() if is_entry(function)]
    reached = reach(module, starts)
    return [function for function in module.all_functions if id(function) in reached]


def is_entry(function):
    """Whether the chain can call this function of the module."""
    return not function.is_private and function.accepts(1)


def _called_by(module, function, entered, is_certain):
    """Functions that this one may call, without those of names that were entered before."""
    called = []
    for name in function.uses:
        if name in module.functions:
            called.append(module.functions[name])
        elif name in module.classes and name not in module.actors:
            methods = module.classes[name].functions
            if is_certain:
                called += [methods[used] for used in function.attributes & methods.keys()]
            if name not in entered:
                entered.add(name)
                called += [
                    method
                    for method in methods.values()
                    if not is_certain or method.name.startswith("__")
                ]
    if isinstance(function.owner, Class):
        for name in function.own_uses:
            if (function.owner, name) not in entered:
                entered.add((function.owner, name))
                called += module.overrides(function.owner, name)
    return called
