"""What is wrong with an actor's module, found without running it.

The host puts these modules into `sys.modules`, in the machine of actors, each after those that it
imports, and calls `check` with the UTF-8 source of the file to look at. The answer is a list of
findings in JSON, sorted by line. Nothing of the file is imported or run; what a module of the
standard library or of the SDK contains is looked up in the machine itself.

An error is certain to be refused: when the module is loaded, or when the line runs. A warning may
be meant. Names are followed through imports and simple aliases, and what cannot be followed is not
reported. Walks use a list as their stack, because the machine allows 256 calls inside each other,
and each part of the file is looked at a fixed number of times.

| module | subject |
|---|---|
| `check_tree` | parts of the syntax tree |
| `check_machine` | modules of the machine |
| `check_findings` | form, order and number of findings |
| `check_names` | scopes, and what names mean |
| `check_functions` | functions, classes, and places inside them |
| `check_module` | the module that is checked: what the rules look at |
| `check_devnet` | rules: what this devnet refuses |
| `check_imports` | rules: imports and unknown names |
| `check_floats` | rules: floating point |
| `check_state` | rules: state that is lost |
| `check_reach` | calls inside the module |
| `check_purity` | rules: messages in pure mode |
| `check_calls` | rules: calls of the host, the SDK and builtins |
| `check_reader` | the walk over the tree, which fills the module |
| `check_decorators` | rules: arguments of decorators |
| `check_classes` | rules: models and actor classes |
| `check_handlers` | rules: handlers |
| `check_continuations` | rules: continuations |

| rule | finds |
|---|---|
| syntax-error | a text that is not Python |
| not-checked | a source that is too long or too deep to be compiled, or to be looked at |
| import-refused | an import of a module that actors do not have |
| unknown-name | a name that a module of the machine does not have |
| asks-while-loading | a question to the host, or an actor's instance, while the module is loaded |
| decorator-arguments | arguments that a decorator of the SDK refuses |
| handler-kind | a handler that is not an ordinary method |
| reserved-name | a use of the names that the SDK puts into an actor |
| model-field | a field that a `CowboyModel` refuses |
| init-denied | an `init` without a permission, which denies the deployment |
| no-init | an actor without an `init`, which the deployment calls |
| not-public | a handler without a permission, which denies all callers but the actor |
| permission-ignored | a permission on a function of the module, where it does nothing |
| ambiguous-handler | a handler of several actor classes, without a function that chooses |
| signature | a handler that does not take exactly one payload |
| async-handler | an `async def` that is no continuation |
| impure-send | a message or a transfer in a handler that is not `@deferred` |
| continuation-form | a continuation that the SDK cannot compile, or whose reply fails |
| continuation-yield | a `yield` in a continuation |
| too-many-awaits | more than 8 awaits in a continuation |
| await-place | an await that is not a statement of the continuation's body |
| await-target | an await of something that runners do not do |
| capture-name | a capture that is missing, or that is lost because it is not named `ctx` |
| lost-local | a variable that does not outlive an await |
| late-name | a name of the module that is defined after the continuation that uses it |
| open-continuation | a return between two awaits, which leaves the continuation's record |
| float | floating point in a handler |
| lost-state | a variable that does not outlive the call |
| storage-copy | a change of a copy of a stored value |
| no-output | `print`, whose output goes nowhere |
| no-files | `open`, which is refused |
| not-on-devnet | a host function that this devnet refuses |
"""

import ast
import json

from check_calls import judge_instances
from check_classes import judge_ambiguity, judge_init, judge_model, judge_reserved_names
from check_continuations import judge_continuation
from check_decorators import judge_class_decorators, judge_decorators
from check_findings import finding
from check_floats import judge_floats
from check_handlers import judge_methods, judge_module_function
from check_module import Module
from check_purity import judge_purity
from check_reach import reachable
from check_reader import read
from check_state import judge_changes

# For a syntax error's text, the interpreter opens the file of this name, which traps in the
# machine. It does not try a name that no file system can have.
_NO_FILE = "\ud800"


def check(payload):
    """The findings for a source, as JSON."""
    try:
        source = payload.decode("utf-8")
    except UnicodeDecodeError as error:
        line = payload.count(b"\n", 0, error.start) + 1
        text = f"byte {error.start} of the file is not UTF-8"
        return _answer([finding(line, 1, "syntax-error", "error", text, "save it as UTF-8")])
    tree, findings = _parse(source)
    if tree is not None:
        try:
            module = Module(source)
            read(module, tree)
            _judge(module)
            findings += module.findings.sorted()
        except Exception as error:
            text = f"the file was not looked at in full: {type(error).__name__}: {error}"
            findings.append(finding(1, 1, "not-checked", "warning", text[:1_000], "report it"))
    return _answer(findings)


def _answer(findings):
    return json.dumps(findings).encode("utf-8")


def _parse(source):
    """The syntax tree, if there is one, and why not."""
    deep = "the source is too long, or nested too deeply,"
    try:
        # In full, because some errors of syntax are only found after the tree is made.
        compile(source, _NO_FILE, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = max(getattr(error, "lineno", None) or 1, 1)
        column = max(getattr(error, "offset", None) or 1, 1)
        what = str(getattr(error, "msg", None) or error)[:1_000]
        return None, [finding(line, column, "syntax-error", "error", what, "correct the syntax")]
    except (RecursionError, MemoryError):
        fix = "split the expression or the block"
        return None, [finding(1, 1, "not-checked", "error", f"{deep} to be compiled", fix)]
    try:
        return compile(source, _NO_FILE, "exec", ast.PyCF_ONLY_AST, dont_inherit=True), []
    except (RecursionError, MemoryError):
        fix = "split the longest expression"
        return None, [finding(1, 1, "not-checked", "warning", f"{deep} to be checked", fix)]


def _judge(module):
    """Applies the rules that need the whole module.

    Their order decides which findings are kept, if one severity has more than an answer can hold.
    """
    for function in module.all_functions:
        judge_decorators(module, function)
        if function.continuation:
            judge_continuation(module, function)
    for cls in module.classes.values():
        judge_class_decorators(module, cls)
        if cls.is_model:
            judge_model(module, cls)
        if cls.actors:
            judge_reserved_names(module, cls)
    judge_methods(module)
    judge_init(module)
    for function in module.functions.values():
        judge_module_function(module, function)
    judge_ambiguity(module)
    judge_purity(module)
    for function in reachable(module):
        judge_floats(module, function)
        judge_changes(module, function)
    judge_instances(module)
