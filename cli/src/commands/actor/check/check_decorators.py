"""Arguments that a decorator of the SDK refuses, if that is certain.

Rule: decorator-arguments; not-on-devnet for decorators that the devnet refuses.
"""

import ast
import inspect

from check_devnet import judge_use
from check_functions import CONTINUATIONS, PERMISSIONS
from check_machine import object_named
from check_tree import STRINGS, is_constant, without_arguments

_CODECS = ("raw", "cbor", "json")


def judge_decorators(module, function):
    for decorator, name in zip(function.node.decorator_list, function.decorators):
        if name is not None and name.startswith("cowboy_sdk."):
            _judge_decorator(module, decorator, name, function)
            judge_use(module, decorator, name)


def judge_class_decorators(module, cls):
    for decorator in cls.node.decorator_list:
        name = module.names.resolve(without_arguments(decorator), module.scope) or ""
        if name.startswith("cowboy_sdk."):
            _judge_decorator(module, decorator, name, None)


def _judge_decorator(module, decorator, name, function):
    refused = _refusal(decorator, name, function)
    if refused is not None:
        what = f"@{name.partition('.')[2]} refuses this: {refused}"
        fix = "see the SDK's manual for its arguments"
        module.error("decorator-arguments", decorator, what, fix)


def _refusal(decorator, name, function):
    """Why the SDK refuses a decorator as it is written, if that is certain."""
    found = object_named(name)
    if not callable(found):
        return None
    call = decorator if isinstance(decorator, ast.Call) else None
    words = {} if call is None else {word.arg: word.value for word in call.keywords}
    starred = call is not None and any(isinstance(arg, ast.Starred) for arg in call.args)
    if starred or None in words:
        if name in CONTINUATIONS and None in words:
            return "its options must be written out"
        return None
    args = [None] if call is None else call.args
    try:
        inspect.signature(found).bind(*args, **words)
    except TypeError as error:
        return str(error)
    except ValueError:
        return None
    if call is None:
        if name in ("cowboy_sdk.emit", "cowboy_sdk.bounded_loop", "cowboy_sdk.callable_by"):
            return "it needs arguments"
        return None
    return _refused_values(name, args, words, function)


def _refused_values(name, args, words, function):
    first = args[0] if args else None
    decode = words.get("decode")
    if name in PERMISSIONS and is_constant(decode):
        if decode.value is not None and decode.value not in _CODECS:
            return f"decode must be one of {', '.join(_CODECS)}"
        if decode.value not in (None, "raw") and getattr(function, "name", "") == "on_fork":
            return "on_fork gets 20 raw bytes"
    if name == "cowboy_sdk.callable_by":
        if not args:
            return "it needs at least one address"
        return next((text for text in map(_refused_address, args) if text), None)
    if name in ("cowboy_sdk.public", "cowboy_sdk.timer", "cowboy_sdk.reentrancy_guard"):
        is_given = is_constant(first) and first.value is not None
        return "it takes named arguments only" if is_given else None
    if name == "cowboy_sdk.emit" and is_constant(first) and not isinstance(first.value, str):
        return "the topic must be a text"
    if name == "cowboy_sdk.on_event":
        return _refused_event({**dict(zip(("emitter", "topic", "gas", "bid"), args)), **words})
    if name in CONTINUATIONS:
        return _refused_options(args, words)
    return None


def _refused_address(node):
    if not is_constant(node):
        return None
    value = node.value
    if isinstance(value, bytes):
        return None if len(value) == 20 else f"an address has 20 bytes, not {len(value)}"
    if isinstance(value, str):
        digits = value[2:] if value[:2] in ("0x", "0X") else value
        return None if len(digits.strip()) == 40 else "an address has 40 hexadecimal digits"
    return "an address is bytes or a text"


def _refused_event(words):
    if "emitter" in words and _refused_address(words["emitter"]):
        return _refused_address(words["emitter"])
    topic = words.get("topic")
    if is_constant(topic) and not isinstance(topic.value, STRINGS):
        return "the topic must be a text or bytes"
    for name in ("gas", "bid"):
        value = _integer(words.get(name))
        if value is not None and (not isinstance(value, int) or value < 0):
            return f"{name} must be a whole number, not negative"
    return None


def _refused_options(args, words):
    if args and (is_constant(args[0]) and args[0].value is not None):
        return "it takes named arguments only"
    timeout, keys = words.get("timeout_blocks"), words.get("guard_keys")
    if timeout is not None and type(_integer(timeout)) is not int:
        return "timeout_blocks must be a whole number, written out (E1202)"
    if keys is None or is_constant(keys) and keys.value is None:
        return None
    if not isinstance(keys, (ast.List, ast.Tuple)) or not all(
        is_constant(key, STRINGS) for key in keys.elts
    ):
        return "guard_keys must be a list of texts or bytes, written out (E1202)"
    return None


def _integer(node):
    """The value of a constant with its sign, or None."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        sign = -1 if isinstance(node.op, ast.USub) else 1
        node = node.operand
    if not is_constant(node):
        return None
    return sign * node.value if type(node.value) is int else node.value
