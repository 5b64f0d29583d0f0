"""State that is lost: outside of the store, or in a copy of a stored value.

A change of a stored value is reported when it is read. Other changes are noted for each function,
and `judge_changes` reports those of functions that handlers reach.

Rules: storage-copy, lost-state, reserved-name.
"""

import ast

from check_findings import shortened
from check_functions import RESERVED, Class

# Methods that change a container.
_CHANGES = set(
    "add append appendleft clear discard extend insert pop popitem remove reverse setdefault sort "
    "update".split()
)


def note_method_change(module, node, place):
    """Notes a call of a method that changes a container."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
        _note_change(module, node, node.func.value, place)


def note_element_change(module, node, place):
    """Notes an assignment to an element, or its deletion."""
    if not isinstance(node.ctx, ast.Load):
        _note_change(module, node, node.value, place)


def note_variable_change(module, node, place):
    """Notes an assignment to a variable of the module."""
    if node.id in place.scope.globals and place.function is not module.code:
        place.function.changes.append((node, node.id))


def note_own_change(node, place):
    """Notes an assignment to an attribute of `self`."""
    place.function.changes.append((node, "self." + node.attr))


def _note_change(module, node, value, place):
    """A change of what `value` holds."""
    if isinstance(value, ast.Name):
        if place.function is not module.code and place.scope.is_of_module(value.id):
            place.function.changes.append((node, value.id))
        return
    if isinstance(value, ast.Call):
        called = value.func
        is_get = isinstance(called, ast.Attribute) and called.attr == "get"
        stored = called.value if is_get else None
    else:
        stored = value.value if isinstance(value, ast.Subscript) else None
    if isinstance(stored, ast.Attribute) and stored.attr == "storage":
        if place.is_self(stored.value):
            what = "this changes a copy: self.storage decodes the value each time it is read"
            fix = "keep it in a variable, change it, and store it again under its key"
            module.warning("storage-copy", node, what, fix)


def judge_changes(module, function):
    """State outside the store: every call gets a fresh machine."""
    is_method = isinstance(function.owner, Class) and (
        id(function) in module.handlers or function.owner.is_actor
    )
    for node, name in function.changes:
        variable, _, attribute = name.rpartition(".")
        if not variable:
            # A function that is used while the module is loaded may fill a table.
            if name not in module.names.containers and not isinstance(node, ast.Name):
                continue
            if function.name in module.code.uses:
                continue
            what = f"{shortened(name)} is lost after this call: every call gets a fresh module"
            module.warning("lost-state", node, what, "keep it in self.storage")
        elif is_method and function.name != "__init__":
            if attribute in RESERVED:
                what = f"self.{attribute} cannot be set: the SDK makes it"
                module.error("reserved-name", node, what, "use another name")
            # The setter of a property may put it into the store.
            elif not module.method(function.owner, attribute):
                short = shortened(attribute)
                what = f"self.{short} is lost after this call: every call gets a fresh instance"
                module.warning("lost-state", node, what, f'self.storage["{short}"] = ...')
