"""Continuations: functions that the SDK splits at their awaits.

The part before the first await becomes the handler, and the parts after each await become branches
of `<name>__resume`, which is called in a later block with the runner's reply. Only the capture,
under the name `ctx`, goes from one part to the next. The functions are made from the source's text,
with a copy of the module's names at that moment.

Rules: continuation-form, continuation-yield, too-many-awaits, await-place, await-target,
capture-name, lost-local, late-name, open-continuation.
"""

import ast

from check_devnet import judge_job
from check_findings import shortened
from check_functions import CONTINUATIONS
from check_machine import BUILTINS
from check_names import LocalNames
from check_tree import assignment, last_part, walk

# The SDK's limit of awaits in a continuation.
_MOST_AWAITS = 8
_JOBS = {"llm", "http", "mcp"}
# What can follow `**` in parentheses only.
_IN_PARENTHESES = (ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.NamedExpr)
# Decorators that put another function around it.
_WRAPPERS = {
    "cowboy_sdk.bounded_loop",
    "cowboy_sdk.emit",
    "cowboy_sdk.on_event",
    "cowboy_sdk.on_stream",
    "cowboy_sdk.reentrancy_guard",
}


def judge_continuation(module, function):
    _Continuation(module, function).judge()


class _Continuation:
    """A function that is a continuation, and its module."""

    def __init__(self, module, function):
        self.module = module
        self.function = function
        self.node = function.node
        self.name = shortened(function.name)
        # Statements that the SDK splits at.
        self.splits = [
            index
            for index, part in enumerate(self.node.body)
            if isinstance(part, (ast.Assign, ast.Expr)) and isinstance(part.value, ast.Await)
        ]

    def error(self, rule, node, what, fix):
        self.module.error(rule, node, what, fix)

    def judge(self):
        function, node = self.function, self.node
        if not function.is_async:
            what = f"a continuation must be an async function, and {self.name} is not (E1202)"
            self.error("continuation-form", node, what, f"async def {self.name}")
            return
        self.judge_form()
        self.judge_awaits()
        if self.splits:
            self.judge_parts()

    def judge_form(self):
        function, node = self.function, self.node
        kind, name = function.continuation, "continuation-form"
        index = function.decorators.index(kind)
        around = function.decorators[:index]
        below = function.decorators[index + 1 :]
        wrapper = next((other for other in below if other in _WRAPPERS), None)
        if wrapper is not None:
            what = f"under @{wrapper.partition('.')[2]} the function is no longer async (E1202)"
            self.error(name, node.decorator_list[index], what, "leave it out")
        wrapper = next((other for other in around if other in _WRAPPERS), None)
        if wrapper is not None:
            what = f"@{wrapper.partition('.')[2]} around a continuation hides the part for replies"
            self.error(name, node.decorator_list[index], what, "leave it out")
        needed = CONTINUATIONS[kind]
        if self.splits and not self.is_bound(needed):
            decorator = node.decorator_list[index]
            if needed == "runner":
                what = "the SDK's code for this uses the name `runner`, which is not defined here"
                self.error(name, decorator, what, "from cowboy_sdk import runner")
            else:
                what = f"the SDK's code for this uses {needed}, which it does not define"
                self.error(name, decorator, what, "@runner.continuation")
        if function.owner is None:
            what = "a continuation that is no method cannot take the runner's reply"
            self.error(name, node, what, "make it a method of an @actor class")
            return
        args = node.args
        # The actor itself may start a private one with any arguments.
        if args.posonlyargs or function.is_handler and len(args.args) != 2:
            what = f"{self.name} must take exactly `self` and a payload: the SDK keeps nothing else"
            self.error(name, node, what, f"async def {self.name}(self, msg)")
        lines = self.module.findings.lines
        first = min(part.lineno for part in [node, *node.decorator_list])
        indent = lines[node.lineno - 1][: node.col_offset]
        for number in range(first, (node.end_lineno or first) + 1):
            line = lines[number - 1]
            if indent and line.strip() and not line.startswith(indent):
                what = "the SDK cuts out the function's text, and this line is not indented (E1202)"
                self.error(name, _At(number), what, "indent it, or move the text to a constant")
                break

    def is_bound(self, name):
        """Whether the module has this name when the function is compiled."""
        names, line = self.module.names, self.node.lineno
        return names.scope.names.get(name, line) < line or names.star_of(name, line) is not None

    def judge_awaits(self):
        function, body = self.function, self.node.body
        statements = {id(body[index].value) for index in self.splits}
        for node in function.yields:
            what = "the SDK refuses a yield in a continuation (E1202)"
            self.error("continuation-yield", node, what, "build a list")
        for node in function.deep_awaits:
            what = "the SDK refuses an await in a function inside a continuation (E1202)"
            self.error("await-place", node, what, "await in the continuation itself")
        for node in function.asynchronous:
            what = "the SDK cannot split a continuation at `async for` or `async with` (E1202)"
            self.error("await-place", node, what, "one await after the other")
        for node in function.awaits:
            if id(node) not in statements:
                what = "the SDK splits only at `x = await ...` and `await ...`, unnested (E1202)"
                fix = "make it a statement of its own, outside of if, try, for and with"
                self.error("await-place", node, what, fix)
        if len(function.awaits) > _MOST_AWAITS:
            what = f"{len(function.awaits)} awaits, and {_MOST_AWAITS} are allowed (E1202)"
            fix = "go on in another continuation"
            self.error("too-many-awaits", function.awaits[_MOST_AWAITS], what, fix)
        if not function.awaits and not function.asynchronous and not function.deep_awaits:
            what = f"{self.name} awaits nothing, so it stays a coroutine: no result"
            self.error("continuation-form", self.node, what, "a plain def")
        for node in function.awaits:
            self.judge_target(node)

    def judge_target(self, node):
        call = node.value
        target = call.func if isinstance(call, ast.Call) else None
        job = last_part(target)
        if job is None:
            what = "an await must be of a call such as runner.llm(...) (E1202)"
            self.error("await-target", node, what, "await runner.llm(...)")
        elif not judge_job(self.module, node, job) and job not in _JOBS:
            short = shortened(job)
            what = f"an await asks runners for a job, and they do no jobs of type `{short}`"
            fix = "call it without await, or await runner.llm, runner.http or runner.mcp"
            self.error("await-target", node, what, fix)
        for word in getattr(call, "keywords", []):
            if isinstance(word.value, _IN_PARENTHESES if word.arg is None else ast.NamedExpr):
                what = "the SDK copies this without its parentheses, and cannot compile it (E1202)"
                self.error("continuation-form", word, what, "put it into a variable first")

    def judge_parts(self):
        splits, parts = set(self.splits), [[]]
        for index, statement in enumerate(self.node.body):
            if index not in splits:
                parts[-1].append(statement)
                continue
            # The job's arguments belong to the part before it, and of the called function the SDK
            # takes the name alone. It drops all targets if there are several.
            targets = getattr(statement, "targets", [])
            call = statement.value.value
            if isinstance(call, ast.Call):
                parts[-1] += [*call.args, *call.keywords]
            parts.append(list(targets) if len(targets) == 1 else [])
        for part in parts[1:-1]:
            for node in walk(part):
                if isinstance(node, ast.Return):
                    what = "this leaves the continuation's record; an actor can have 100 of them"
                    fix = "go on to the next await, or split the continuation"
                    self.module.warning("open-continuation", node, what, fix)
        names = [LocalNames(part, self.node.inner) for part in parts]
        names[0].stores.update(self.function.parameters)
        needed = CONTINUATIONS[self.function.continuation]
        for part, index in zip(names, self.splits):
            if needed in part.stores - part.imports:
                what = f"the SDK's code for this uses `{needed}`, which is another variable here"
                self.error("continuation-form", self.node.body[index], what, "rename the variable")
        capture = self.judge_capture(names)
        self.judge_names(names, capture)

    def judge_capture(self, names):
        """The variable that holds the capture, as the SDK finds it."""
        start = self.node.body[: self.splits[0]]
        for part in start:
            name = _captured(part)
            if name is not None:
                if name != "ctx" and any(name in later.loads for later in names[1:]):
                    what = f"after an await the capture is `ctx`, and not `{shortened(name)}`"
                    self.error("capture-name", part, what, "ctx = capture()")
                return name
        bound = names[0].stores.union(self.module.scope.names)
        if start and "ctx" not in bound:
            what = "the SDK saves `ctx` before the first await, and it is not defined"
            self.error("capture-name", self.node.body[self.splits[0]], what, "ctx = capture()")
        return "ctx"

    def judge_names(self, names, capture):
        function, module = self.function, self.module
        local = set().union(*(part.stores for part in names))
        later = set().union(*(part.stores for part in names[1:]))
        imported = set().union(*(part.imports for part in names))
        kept = {"ctx", capture, *function.parameters[:1], *self.node.inner.globals}
        told = set()
        for part in names[1:]:
            for name, node in part.loads.items():
                if name not in local or name in part.stores or name in kept or name in told:
                    continue
                told.add(name)
                short = shortened(name)
                if name == "msg":
                    if name in function.parameters:
                        what = "after an await `msg` is the runner's reply, not the argument"
                        module.warning("lost-local", node, what, "ctx.msg = msg before the await")
                    continue
                fix = f"ctx.{short} = ... before the await"
                is_of_module = name in module.scope.names or module.names.star_of(name)
                if name in later or not (is_of_module or name in BUILTINS):
                    what = f"`{short}` does not outlive the await: after it the name is not defined"
                    self.error("lost-local", node, what, fix)
                elif not (is_of_module and name in imported):
                    other = "the module's" if is_of_module else "Python's own"
                    what = f"`{short}` does not outlive the await: after it the name is {other}"
                    module.warning("lost-local", node, what, fix)
        for part in names:
            for name, node in part.loads.items():
                if name not in module.scope.names or name in local or name in told:
                    continue
                if not (name in BUILTINS or self.is_bound(name)):
                    told.add(name)
                    short = shortened(name)
                    what = f"the SDK compiles this before `{short}` is defined, and never finds it"
                    self.error("late-name", node, what, f"define {short} before the class")


def _captured(node):
    """The variable that a statement puts a capture into, by the SDK's rule, or None."""
    target, value = assignment(node)
    if isinstance(node, ast.Assign) and target is not None and isinstance(value, ast.Call):
        return target.id if last_part(value.func) == "capture" else None
    return None


class _At:
    """The beginning of a line."""

    def __init__(self, line):
        self.lineno = line
        self.col_offset = 0
