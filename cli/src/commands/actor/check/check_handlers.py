"""Handlers: who may call them, with what, and what they give back.

Rules: handler-kind, async-handler, init-denied, not-public, permission-ignored, signature.
"""

from check_findings import shortened
from check_functions import PERMISSIONS, SUBSCRIPTIONS

# Decorators that leave the function as it is.
_TAGS = PERMISSIONS | {"cowboy_sdk.pure", "cowboy_sdk.deferred", "cowboy_sdk.timer"}
_NOT_METHODS = {
    "builtins.classmethod",
    "builtins.staticmethod",
    "functools.cache",
    "functools.cached_property",
    "functools.lru_cache",
    "functools.singledispatchmethod",
}
# Handlers that the chain calls by these names.
_OF_THE_CHAIN = {"init", "handle_message", "handle_timer", "on_fork"}
# Those that the actor itself sends.
_OF_THE_ACTOR = {"handle_timer", "on_fork"}


def judge_methods(module):
    """Judges the methods of actors, each once for all actors that have it."""
    # The actors that call a method of this name, those with methods that the chain has to call in
    # an instance, and those with subscriptions.
    callers, entered, subscribed = {}, 0, 0
    for function in module.handlers.values():
        for name in function.own_uses:
            callers[name] = callers.get(name, 0) | function.actors
        if function.is_handler and not module.may_define(function.name):
            entered |= function.actors
        if function.has(SUBSCRIPTIONS):
            subscribed |= function.actors
    for function in module.handlers.values():
        if function.name == "__init__":
            _judge_constructor(module, function, function.actors & entered)
        if not function.is_handler:
            continue
        if _judge_kind(module, function):
            continue
        if function.is_async and not function.continuation:
            _report_async(module, function)
        if not function.has_permission:
            first = function.actors & -function.actors
            is_called = callers.get(function.name, 0) & first
            _judge_permission(module, function, is_called, not function.actors & ~subscribed)
        expected = function.has_permission or function.name in _OF_THE_CHAIN
        if expected or function.has({"cowboy_sdk.timer", "cowboy_sdk.on_event"}):
            if not function.continuation and None not in function.decorators:
                _judge_signature(module, function, 2)


def judge_module_function(module, function):
    if function.continuation:
        return
    is_shim = function.name in module.handler_names
    if function.has_permission:
        name = shortened(function.name)
        what = f"the permission of {name} does nothing: anyone can call it"
        fix = "make it a method of an @actor class"
        module.warning("permission-ignored", function.node, what, fix)
    if function.has_permission or is_shim or function.name in _OF_THE_CHAIN:
        if None not in function.decorators:
            _judge_signature(module, function, 1)
    if function.is_async and (is_shim or not function.is_private):
        _report_async(module, function)


def _judge_constructor(module, function, actors):
    """Judges the constructor of these actors, of which the chain makes instances."""
    if actors and not function.accepts(1):
        cls = next(module.actors_of(actors))
        what = f"the chain makes a {shortened(cls.name)} without arguments"
        fix = "give the arguments defaults, or write a function of the module for each handler"
        module.warning("signature", function.node, what, fix)


def _judge_kind(module, function):
    """Whether it is no handler after all: something that the SDK refuses, or a property."""
    for name in function.decorators:
        if name in _NOT_METHODS:
            what = f"the SDK refuses a public {name.rpartition('.')[2]} in an actor class"
            fix = "make it a plain method, or start its name with _"
            module.error("handler-kind", function.node, what, fix)
            return True
        if name not in _TAGS:
            break
    return function.may_be_data


def _report_async(module, function):
    what = f"{shortened(function.name)} returns a coroutine, which is no result"
    fix = "@runner.continuation if it awaits runners, else a plain def"
    module.warning("async-handler", function.node, what, fix)


def _judge_permission(module, function, is_called, is_subscribed):
    name, node = shortened(function.name), function.node
    if function.name == "init":
        shim = module.functions.get("init")
        if not module.may_define("init") or shim is not None and "init" in shim.attributes:
            what = "init needs a permission too: without one the deployment is denied (E1230)"
            module.error("init-denied", node, what, "@public")
        return
    if function.has(SUBSCRIPTIONS | {"cowboy_sdk.timer"}):
        return
    if function.name in _OF_THE_ACTOR or function.name in module.mentioned:
        return
    if function.name == "handle_message":
        if not is_subscribed:
            what = "handle_message has no permission: messages of others are denied (E1230)"
            fix = "@public, or @callable_by(...) with their addresses"
            module.warning("not-public", node, what, fix)
        return
    if is_called:
        what = (
            f"{name} has no permission, so only the actor itself can call it (E1230), and "
            f"self.{name}(...) is denied too while it serves another caller"
        )
        fix = f"name it _{name} if only handlers use it, else @public or @callable_by(...)"
    else:
        what = f"{name} has no permission, so only the actor itself can call it (E1230)"
        fix = "@public, or @callable_by(OWNER)"
    module.warning("not-public", node, what, fix)


def _judge_signature(module, function, count):
    if not function.accepts(count):
        name = shortened(function.name)
        what = f"{name} is called with exactly one payload"
        fix = f"def {name}({'self, ' * (count - 1)}payload)"
        module.warning("signature", function.node, what, fix)
