"""The machine: its modules, and the names that they contain.

The host puts a line `IMPORTABLE = frozenset({...})` before this module: the modules that actors can
import. They are looked up in the machine that runs this program, which also runs the actors.
"""

BUILTINS = set(__builtins__ if isinstance(__builtins__, dict) else dir(__builtins__))


def is_importable(top):
    """Whether actors can import the top-level module of this name."""
    return top in IMPORTABLE


def module_named(name):
    """A module that actors can import, by its dotted name, or None."""
    if not is_importable(name.partition(".")[0]):
        return None
    try:
        return __import__(name, fromlist=("__name__",))
    except Exception:
        return None


def object_named(name):
    """The object of a dotted name in the machine, or None."""
    top, *rest = name.split(".")
    found = module_named(top)
    for attribute in rest:
        found = getattr(found, attribute, None)
    return found


def exported_by(module):
    """The names that `from module import *` gives."""
    found = module_named(module)
    if found is None:
        return set()
    public = [name for name in dir(found) if not name.startswith("_")]
    return set(getattr(found, "__all__", public))


def has_name(module, name):
    """Whether `name` can be imported from the module of this dotted name."""
    return hasattr(module_named(module), name) or module_named(f"{module}.{name}") is not None
