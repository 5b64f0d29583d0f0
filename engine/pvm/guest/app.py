"""The component's program: compiles and loads an actor's module and calls its handlers.

It runs twice: while the component is built, when everything that actors may need is imported and
becomes part of the snapshot, and in each instance, when either `compile` is called once, or `load`
and `call` once each.
Texts that it makes are part of results, and everything it does costs fuel, so a change of it is a
new machine.
"""

import __future__
import builtins
import functools
import gc
import importlib
import io
import linecache
import marshal
import operator
import pkgutil
import sys
import types

# The standard library imports these only when it needs them, and then there is no file system.
import _ast_unparse
import annotationlib
import codecs
import collections.abc
import datetime
import encodings.ascii
import encodings.hex_codec
import encodings.idna
import encodings.latin_1
import encodings.unicode_escape
import encodings.utf_16
import locale
import pprint
import queue
import string.templatelib
import uuid
import warnings
import zlib

import pvm_host
import wit_world
from componentize_py_types import Err
from importable import IMPORTABLE

import cowboy_sdk

for _name in sorted(IMPORTABLE):
    importlib.import_module(_name)
# Without the modules for tests outside a chain.
_FOR_TESTS = {"testing", "mock_host", "_signature_mock"}
for _module in sorted(module.name for module in pkgutil.iter_modules(cowboy_sdk.__path__)):
    if _module not in _FOR_TESTS:
        importlib.import_module("cowboy_sdk." + _module)

_NAME = "actor_main"
_FILE = "<actor>"
_NO_FILE = "\ud800"
# The recursion limit of the chain's own interpreter.
_RECURSION = 256
# And while a module is compiled: functions inside each other, more than the parser allows.
_NESTED = 4_000

# Bytes of the parts of an exception.
_KIND = 128
_SLUG = 16
_HINT = 512
_MESSAGE = 2048
_TRACEBACK = 4096
# Innermost lines of a traceback.
_LINES = 16

_import = builtins.__import__


def _import_of_actor(name, globals=None, locals=None, fromlist=(), level=0):
    """Says early and plainly that a module is not there. It is no wall: that is the component."""
    if level == 0 and globals is not None and globals.get("__name__") == _NAME:
        top = name.partition(".")[0]
        if top not in IMPORTABLE:
            raise ImportError(f"actors cannot import {top}", name=name)
    return _import(name, globals, locals, fromlist, level)


builtins.__import__ = _import_of_actor


class _NoFiles:
    """The last finder of modules: there is no file system."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class _Nothing(io.StringIO):
    """The standard output, which goes nowhere."""

    def write(self, text):
        return len(text)


def _no_open(*arguments, **named):
    raise PermissionError("actors have no file system")


def _begin():
    """Takes the file system away, which was needed while the component was built."""
    sys.path[:] = []
    sys.path_importer_cache.clear()
    # After those of built-in and frozen modules.
    sys.meta_path.insert(2, _NoFiles)
    sys.stdout = sys.stderr = _Nothing()
    # To show a warning, the interpreter looks for files.
    warnings.simplefilter("ignore")
    builtins.open = io.open = _no_open
    sys.setrecursionlimit(_RECURSION)


def _cut(text, most):
    """A text of at most `most` bytes, without lone surrogates."""
    text = str.__str__(text)[:most]
    return text.encode("utf-8", "backslashreplace")[:most].decode("utf-8", "ignore")


def _hint(error, name, most):
    try:
        value = getattr(error, name, None)
    except BaseException:
        return None
    return _cut(value, most) if isinstance(value, str) and value else None


def _place(file, line, function):
    """A line of a traceback, if it is one of the actor's."""
    if file == _FILE and line is not None:
        source = linecache.getline(_FILE, line).strip()
        return f"{_FILE}:{line} in {function}: {source}"
    # The SDK compiles the parts of a continuation, whose lines are not those of the source.
    for part, moment in (("<fsm_init:", "before its first await"), ("<fsm_resume:", "after an await")):
        if file.startswith(part):
            return f"{_FILE} in {function}: {moment}"
    return None


def _traceback(error):
    places = []
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        place = _place(code.co_filename, step.tb_lineno, code.co_name)
        if place is not None:
            places.append(place)
        step = step.tb_next
    if isinstance(error, SyntaxError) and error.filename == _FILE:
        places.append(_place(_FILE, error.lineno, "<module>"))
    if len(places) > _LINES:
        places[:-_LINES] = [f"{len(places) - _LINES} more"]
    return "\n".join(places)


def _raised(error):
    try:
        message = str(error)
    except BaseException:
        message = "its text cannot be made"
    try:
        places = _traceback(error)
    except BaseException:
        places = ""
    return wit_world.Raised(
        _cut(type.__dict__["__name__"].__get__(type(error)), _KIND),
        _cut(message, _MESSAGE),
        _hint(error, "ERROR_SLUG", _SLUG),
        _hint(error, "why", _HINT),
        _hint(error, "fix", _HINT),
        _cut(places, _TRACEBACK),
    )


class NoHandler(Exception):
    """The module has no such handler."""


def _is_handler(name, function):
    """Whether a function can be called by this name from outside the actor."""
    if type(function) is not types.FunctionType:
        return False
    if not name.startswith("_"):
        return True
    # Private, unless the SDK or the author says otherwise.
    return (
        name.endswith("__resume")
        or hasattr(function, "_call_perm")
        or getattr(function, "_is_continuation_resume", False)
    ) and not name.startswith("__")


def _handler(name):
    """A function of the module, or a method of a fresh instance of its only actor class."""
    names = sys.modules[_NAME].__dict__
    function = names.get(name)
    # Without functions that the module imported: they are not meant to be called from outside.
    if not (_is_handler(name, function) and function.__module__ == _NAME):
        function = None
    # The SDK leaves the second part of a method's continuation among the module's names.
    if function is not None and not getattr(function, "_is_continuation_resume", False):
        return function
    classes = {
        id(value): value
        for value in names.values()
        if isinstance(value, type)
        and value.__module__ == _NAME
        and vars(value).get("_is_cowboy_actor")
        and _is_handler(name, vars(value).get(name))
    }
    if len(classes) == 1:
        (actor,) = classes.values()
        return getattr(actor(), name)
    if function is not None:
        return function
    if classes:
        raise NoHandler(f"{len(classes)} actor classes have a method {name}")
    raise NoHandler(f"the actor has no handler {name}")


_builtin_compile = compile
# Flags of code with a `from __future__ import`, which code that it compiles has, too.
_FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


def _compile_without_files(
    source, filename, mode, flags=0, dont_inherit=False, optimize=-1, *, _feature_version=-1
):
    """The function `compile`, which the SDK also uses, for continuations.

    For the text of a syntax error, the interpreter opens the file of that name before it looks at
    the source, which traps, because there is no file system. It does not try a name that no file
    system can have.
    """
    if not dont_inherit:
        flags |= sys._getframe(1).f_code.co_flags & _FUTURES
    try:
        compiled = _builtin_compile(
            source, _NO_FILE, mode, flags, True, optimize, _feature_version=_feature_version
        )
    except SyntaxError as error:
        error.filename = filename
        raise
    return _with_file(compiled, filename) if type(compiled) is types.CodeType else compiled


builtins.compile = _compile_without_files


def _with_file(code, file):
    constants = tuple(
        _with_file(value, file) if type(value) is types.CodeType else value
        for value in code.co_consts
    )
    return code.replace(co_filename=file, co_consts=constants)


def _remember(source):
    # `inspect.getsource` finds the source here: without a time, the entry is never checked.
    linecache.cache[_FILE] = (len(source), None, source.splitlines(True), _FILE)


def _run(source, code):
    _remember(source)
    module = types.ModuleType(_NAME)
    module.__file__ = _FILE
    sys.modules[_NAME] = module
    exec(marshal.loads(code), module.__dict__)


def _call(handler, payload):
    answer = _handler(handler)(payload)
    if answer is None:
        return b""
    if not isinstance(answer, bytes):
        raise TypeError(f"handler {handler} returned {type(answer).__name__}, not bytes or None")
    answer = memoryview(answer).tobytes()
    if len(answer) > pvm_host._MAX_BYTES:
        raise ValueError(f"handler {handler} returned {len(answer)} bytes")
    return answer


class WitWorld(wit_world.WitWorld):
    """The component's exports."""

    def compile(self, source):
        _begin()
        _remember(source)
        sys.setrecursionlimit(_NESTED)
        try:
            return marshal.dumps(compile(source, _FILE, "exec", dont_inherit=True))
        except BaseException as error:
            raised = _raised(error)
        raise Err(raised)

    def load(self, source, code):
        _begin()
        try:
            _run(source, code)
            pvm_host._state.loading = False
            return None
        except BaseException as error:
            raised = _raised(error)
        raise Err(raised)

    def call(self, handler, payload):
        try:
            return _call(handler, bytes(payload))
        except BaseException as error:
            raised = _raised(error)
        raise Err(raised)


# What the build read of its folders. To free it costs more than many calls do.
sys.path_importer_cache.clear()
gc.collect()
gc.freeze()
