"""Classes: fields of models, names of actors, and what several actors leave open.

Rules: model-field, reserved-name, no-init, ambiguous-handler.
"""

import ast
from itertools import islice

from check_findings import shortened
from check_functions import RESERVED, SUBSCRIPTIONS
from check_tree import is_constant, last_part

# Options of a field that give it a default.
_DEFAULTS = {"default", "default_factory"}


def judge_model(module, cls):
    # The last field with a default, of those that a constructor takes by their order.
    default, in_order = None, True
    for part in cls.node.body:
        if not isinstance(part, ast.AnnAssign) or not isinstance(part.target, ast.Name):
            continue
        name, kind, value = part.target.id, part.annotation, part.value
        field = shortened(name)
        mark = _mark(module, kind)
        if mark == "KW_ONLY":
            in_order = False
        if mark is not None:
            continue
        text = kind.value if is_constant(kind, str) else last_part(kind)
        if text in ("set", "frozenset") and text not in module.scope.names:
            what = f"{field}: the SDK refuses fields of type {text} (E1101)"
            module.error("model-field", part, what, "use list, or cowboy_sdk.ordered_set")
        options = _options_of_field(module, value)
        if options is None:
            continue
        if "default" in options and _is_refused(module, options["default"]):
            what = f"{field}: a list, dict or set cannot be a default"
            module.error("model-field", part, what, "dataclasses.field(default_factory=list)")
        if not in_order or not options.keys() <= _DEFAULTS:
            continue
        if options:
            default = field
        # A class attribute of this name is a default too.
        elif default and not any(name in ancestor.values for ancestor in cls.ancestry):
            what = f"{field} has no default, but follows {default}, which has one"
            module.error("model-field", part, what, "move the fields with defaults to the end")


def _mark(module, kind):
    """What dataclasses take an annotation as, if it is not the type of a field."""
    if is_constant(kind, str):
        name = kind.value.partition("[")[0].rpartition(".")[2].strip()
    else:
        kind = kind.value if isinstance(kind, ast.Subscript) else kind
        name = (module.names.resolve(kind, module.scope) or last_part(kind) or "").split(".")[-1]
    return name if name in ("ClassVar", "InitVar", "KW_ONLY") else None


def _options_of_field(module, value):
    """The options of a field with this value, by their names, or None if it may be any field."""
    if not isinstance(value, ast.Call):
        return {} if value is None else {"default": value}
    name = module.names.resolve(value.func, module.scope)
    if name == "dataclasses.field":
        return {word.arg: word.value for word in value.keywords}
    is_known = name is not None or module.names.variable(value.func) in module.classes
    return {"default": value} if is_known else None


def _is_refused(module, value):
    """Whether a dataclass refuses a value as a default: containers without a hash."""
    name = module.names.resolve(value.func, module.scope) if isinstance(value, ast.Call) else None
    is_of_sdk = name is not None and name.startswith("cowboy_sdk.")
    return module.names.is_container(value, module.scope) and not is_of_sdk


def judge_reserved_names(module, cls):
    """Looks at a class of an actor."""
    for name in RESERVED:
        taken = cls.functions.get(name)
        node = cls.values.get(name) if taken is None else taken.node
        if node is not None:
            what = f"the SDK refuses a `{name}` in an actor class: it makes it itself"
            module.error("reserved-name", node, what, "give it another name")


def judge_init(module):
    if not module.actors or module.may_define("init"):
        return
    for cls in module.classes.values():
        if cls.actors and ("init" in cls.functions or "init" in cls.values):
            return
        # A base that is not known may have one.
        if cls.actors and None in cls.other_bases:
            return
    # The SDK makes an `init` for classes that subscribe to something.
    if any(function.has(SUBSCRIPTIONS) for function in module.handlers.values()):
        return
    cls = next(iter(module.actors.values()))
    what = "a deployment calls `init`, which this module does not have"
    module.warning("no-init", cls.node, what, "write one, or deploy it with --no-init")


def judge_ambiguity(module):
    """Looks for names of handlers that several actors have."""
    owners = {}
    for function in module.handlers.values():
        if function.is_handler and not function.may_be_data:
            owners.setdefault(function.name, []).append(function)
            if function.continuation and function.awaits:
                owners.setdefault(function.name + "__resume", []).append(function)
    for name, functions in owners.items():
        actors = 0
        for function in functions:
            actors |= function.actors
        if actors.bit_count() < 2 or module.may_define(name):
            continue
        cls = module.last_of(actors)
        # A method that is written takes precedence over the second part of a continuation.
        function = max(functions, key=lambda one: (one.actors.bit_length(), one.name == name))
        # It may be inherited, and then the class is the place.
        node = function.node if function.owner is cls else cls.node
        classes = " and ".join(shortened(cls.name) for cls in islice(module.actors_of(actors), 2))
        what = f"{shortened(name)} is in {classes}, so a call of it is refused"
        fix = f"def {shortened(name)}(p): return {shortened(cls.name)}().{shortened(name)}(p)"
        module.error("ambiguous-handler", node, what, f"outside of the classes: {fix}")
