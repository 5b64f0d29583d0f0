"""Imports, and names of modules that the machine does not have.

Rules: import-refused, unknown-name.
"""

import ast
import types

from check_findings import shortened
from check_machine import has_name, is_importable, module_named, object_named

# Modules of the SDK that are for tests outside a chain.
_FOR_TESTS = {"testing", "mock_host", "_signature_mock"}
# What to use in place of a module that actors do not have.
_INSTEAD = {
    "asyncio": "make it a continuation: @runner.continuation and await runner.llm(...)",
    "datetime": "use cowboy_sdk.pvm_time or runtime.get_timestamp_ms()",
    "httpx": "await runner.http(url) in a continuation",
    "openai": "await runner.llm(prompt) in a continuation",
    "os": "actors have no files, processes or environment",
    "pickle": "use cowboy_sdk.codec",
    "random": "use cowboy_sdk.pvm_random",
    "requests": "await runner.http(url) in a continuation",
    "secrets": "nothing is secret on a chain; for random numbers use cowboy_sdk.pvm_random",
    "socket": "await runner.http(url) in a continuation",
    "time": "use cowboy_sdk.pvm_time or runtime.get_block_height()",
    "urllib": "await runner.http(url) in a continuation",
    "uuid": "make the id from runtime.get_tx_hash()",
}
_CORRECT = "correct the name, or see the SDK's release notes"


def judge_import(module, node, place):
    failures = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
    report = module.warning if place.caught & failures else module.error
    if isinstance(node, ast.ImportFrom) and node.level:
        what = "an actor is a single file, so a relative import finds nothing"
        report("import-refused", node, what, "put the code into this file")
        return
    if isinstance(node, ast.Import):
        names = [(alias.name, None) for alias in node.names]
    else:
        names = [(node.module, alias.name) for alias in node.names]
    for imported, name in names:
        top, _, rest = imported.partition(".")
        if not is_importable(top):
            what = f"actors cannot import {shortened(top)}"
            fix = _INSTEAD.get(top, "actors have the SDK and a part of the standard library")
            report("import-refused", node, what, fix)
        elif top == "cowboy_sdk" and (rest in _FOR_TESTS or not rest and name in _FOR_TESTS):
            what = f"cowboy_sdk.{rest or name} is for tests and is not in the machine"
            report("import-refused", node, what, "keep tests in a file of their own")
        elif module_named(top) is None:
            continue
        elif rest and module_named(imported) is None:
            what = f"the machine has no module {shortened(imported)}"
            report("import-refused", node, what, "correct the name")
        elif name not in (None, "*") and not has_name(imported, name):
            what = f"{shortened(imported)} has no {shortened(name)}"
            report("unknown-name", node, what, _CORRECT)


def judge_attribute(module, node, name, place):
    """Reports an attribute, by its dotted name, that a module of the machine does not have."""
    owner, _, attribute = name.rpartition(".")
    if place.caught & {"AttributeError", "Exception", "BaseException"}:
        return
    found = object_named(owner)
    if not isinstance(found, types.ModuleType) or attribute in module.guarded:
        return
    if not hasattr(found, attribute):
        module.error("unknown-name", node, f"{owner} has no {shortened(attribute)}", _CORRECT)
