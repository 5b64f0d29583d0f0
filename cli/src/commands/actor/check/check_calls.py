"""Calls of the host, of the SDK and of builtins, by their names.

Rules: asks-while-loading, no-output, no-files.
"""

import ast

from check_devnet import judge_use
from check_findings import shortened
from check_tree import STRINGS, is_constant

_ASKS = {
    f"cowboy_sdk.runtime.{name}"
    for name in (
        "actor_address call_actor context delete_state emit_event get_actor_address "
        "get_block_height get_sender get_state get_timestamp_ms get_tx_hash randomness "
        "scan_state_prefix schedule_timer send_message sender set_state"
    ).split()
}

# Calls that take elements of an iterable at once.
_DRAINING = {
    "builtins.dict.fromkeys",
    *(
        f"builtins.{name}"
        for name in (
            "all any bytearray bytes dict frozenset list max min next set sorted sum tuple"
        ).split()
    ),
}


def judge_call(module, node, name, place):
    """Reports a call of the function with this dotted name, and notes what it tells."""
    judge_use(module, node, name)
    if name in _ASKS and _is_loading(module, place) and not place.caught:
        what = "the host cannot be asked while the module is loaded"
        module.error("asks-while-loading", node, what, "ask in the handler")
    if name in ("builtins.exec", "builtins.globals", "builtins.vars"):
        module.is_dynamic = True
    if name == "cowboy_sdk.actor" and _is_loading(module, place):
        module.made_actors += node.args[:1]
    if name == "builtins.print":
        what = "the output of print goes nowhere"
        module.warning("no-output", node, what, "emit an event: runtime.emit_event(name, value)")
    if name == "builtins.open":
        what = "open raises PermissionError: actors have no files"
        module.warning("no-files", node, what, "keep data in self.storage")
    if name in ("builtins.hasattr", "builtins.getattr") and len(node.args) > 1:
        if is_constant(node.args[1], STRINGS):
            module.guarded.add(node.args[1].value)
    if name.startswith("cowboy_sdk."):
        _note_mentioned(module, node)


def _note_mentioned(module, node):
    values = [*node.args, *(word.value for word in node.keywords)]
    for table in [value for value in values if isinstance(value, ast.Dict)]:
        values += table.values
    for value in values:
        if is_constant(value, STRINGS):
            module.mentioned.add(value.value)
        elif isinstance(value, ast.Attribute):
            module.mentioned.add(value.attr)


def _is_loading(module, place):
    """Whether this runs while the module is loaded."""
    return place.function is module.code and not place.depth and not place.is_lazy


def is_draining(node, name):
    """Whether a call of the function with this dotted name takes elements of its arguments."""
    called = node.func
    is_join = isinstance(called, ast.Attribute) and called.attr == "join"
    return name in _DRAINING or is_join and is_constant(called.value, STRINGS)


def note_instance(module, node, place):
    """Notes a call that may make an actor's instance while the module is loaded."""
    if isinstance(node.func, ast.Name) and _is_loading(module, place) and not place.caught:
        module.made.append((node, node.func.id))


def judge_instances(module):
    for node, name in module.made:
        if name in module.actors:
            short = shortened(name)
            what = f"{short}() asks the host, which refuses while the module is loaded"
            module.error("asks-while-loading", node, what, f"def _a(): return {short}()")
