"""What is wrong with an actor's module, found without running it.

The host puts a line `IMPORTABLE = frozenset({...})` before this program, loads it into the machine
of actors as if it were an actor, and calls `check` with the UTF-8 source of the file to look at.
The answer is a list of findings in JSON, sorted by line. Nothing of the file is imported or run;
what a module of the standard library or of the SDK contains is looked up in the machine itself.

An error is certain to be refused: when the module is loaded, or when the line runs. A warning may
be meant. Names are followed through imports and simple aliases, and what cannot be followed is not
reported. Walks use a list as their stack, because the machine allows 256 calls inside each other,
and each part of the file is looked at a fixed number of times.

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
import cowboy_sdk
import inspect
import json
import types

# Findings of a severity. More have one cause, and an answer has at most 1 MiB.
_MOST_FINDINGS = 500
_LONGEST_NAME = 80
# The SDK's limit of awaits in a continuation.
_MOST_AWAITS = 8
# Attributes of the longest name that has a meaning: `cowboy_sdk.runner.continuation`.
_LONGEST_CHAIN = 4
# Steps that an alias, a base class or an operand is followed.
_FOLLOWED = 8
# For a syntax error's text, the interpreter opens the file of this name, which traps in the
# machine. It does not try a name that no file system can have.
_NO_FILE = "\ud800"

# Modules of the SDK that are for tests outside a chain.
_FOR_TESTS = {"testing", "mock_host", "_signature_mock"}
# Where the SDK defines what it also offers under its own name.
_HOMES = {
    f"cowboy_sdk.{module}.{name}": f"cowboy_sdk.{name}"
    for module, names in {
        "actor": "actor ActorRef",
        "bounded_loop": "bounded_loop",
        "call": "call",
        "continuation": "capture save_cont",
        "events": "emit on_event",
        "fork": "fork",
        "guards": "reentrancy_guard",
        "handler_mode": "pure deferred",
        "models": "CowboyModel",
        "on_stream": "on_stream",
        "permissions": "public callable_by",
        "send": "send",
        "taskgroup": "TaskGroup",
        "timer": "timer",
    }.items()
    for name in names.split()
}

_PERMISSIONS = {"cowboy_sdk.public", "cowboy_sdk.callable_by"}
# Decorators that leave the function as it is.
_TAGS = _PERMISSIONS | {"cowboy_sdk.pure", "cowboy_sdk.deferred", "cowboy_sdk.timer"}
# Decorators that put another function around it.
_WRAPPERS = {
    "cowboy_sdk.bounded_loop",
    "cowboy_sdk.emit",
    "cowboy_sdk.on_event",
    "cowboy_sdk.on_stream",
    "cowboy_sdk.reentrancy_guard",
}
_CONTINUATIONS = {
    "cowboy_sdk.runner.continuation": "runner",
    "cowboy_sdk.actor.continuation": "ACTOR_RUNNER_ADDRESS",
}
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
# Of these the actor itself is the sender.
_OF_THE_ACTOR = {"handle_timer", "on_fork"}
_CODECS = ("raw", "cbor", "json")

_IMPURE = {
    "cowboy_sdk.send",
    "cowboy_sdk.send.send_raw",
    "cowboy_sdk.runner.dispatch",
    "cowboy_sdk.runner.send_message",
    "cowboy_sdk.runtime.intent_broadcast",
    "cowboy_sdk.runtime.intent_deposit",
    "cowboy_sdk.runtime.intent_withdraw",
    "cowboy_sdk.runtime.send_message",
    "cowboy_sdk.runtime.submit_job",
    "cowboy_sdk.runtime.transfer_balance",
}
_JOBS = {"llm", "http", "mcp"}
_ABSENT_JOBS = {"agent", "container"}
_ABSENT = {
    "cowboy_sdk.fork": "forks of actors",
    "cowboy_sdk.on_event": "event subscriptions",
    "cowboy_sdk.on_stream": "feeds",
    **{
        f"cowboy_sdk.runtime.{name}": what
        for what, names in {
            "forks of actors": "fork_actor",
            "upgrades of actors": "upgrade_self",
            "event subscriptions": "subscribe_event unsubscribe_event force_unsubscribe_event "
            "update_bid topup_subscription",
            "jobs by raw payload": "submit_job",
            "intents": "intent_deposit intent_withdraw intent_broadcast",
            "off-chain images": "offchain_image_initialize offchain_image_update",
        }.items()
        for name in names.split()
    },
}
_ASKS = {
    f"cowboy_sdk.runtime.{name}"
    for name in (
        "actor_address call_actor context delete_state emit_event get_actor_address "
        "get_block_height get_sender get_state get_timestamp_ms get_tx_hash randomness "
        "scan_state_prefix schedule_timer send_message sender set_state"
    ).split()
}

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

# Functions of `math` and `statistics` that give whole numbers for whole numbers, or no numbers.
_EXACT_MATH = set(
    "ceil comb factorial floor gcd isclose isfinite isinf isnan isqrt lcm perm prod sumprod trunc "
    "median_high median_low mode multimode".split()
)
_WHOLE = "integers, in basis points or the smallest unit"
_FLOAT_CALLS = {
    "builtins.float": _WHOLE,
    "cowboy_sdk.SoftFloat": _WHOLE,
    "cowboy_sdk.pvm_random.random": "cowboy_sdk.pvm_random.randrange(n)",
    "cowboy_sdk.pvm_random.uniform": "cowboy_sdk.pvm_random.randint(a, b)",
    "cowboy_sdk.pvm_time.monotonic": "runtime.get_block_height() or pvm_time.time_ms()",
    "cowboy_sdk.pvm_time.time": "runtime.get_block_height() or pvm_time.time_ms()",
}
_EXACT_TYPES = {"decimal.Decimal", "fractions.Fraction"}

_CONTAINERS = {
    "builtins.dict",
    "builtins.list",
    "builtins.set",
    "collections.Counter",
    "collections.OrderedDict",
    "collections.defaultdict",
    "collections.deque",
    "cowboy_sdk.SortedMap",
    "cowboy_sdk.ordered_set",
}
_CHANGES = set(
    "add append appendleft clear discard extend insert pop popitem remove reverse setdefault sort "
    "update".split()
)

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_STRINGS = (str, bytes)


def check(payload):
    """The findings for a source, as JSON."""
    try:
        source = payload.decode("utf-8")
    except UnicodeDecodeError as error:
        line = payload.count(b"\n", 0, error.start) + 1
        text = f"byte {error.start} of the file is not UTF-8"
        return _answer([_finding(line, 1, "syntax-error", "error", text, "save it as UTF-8")])
    tree, findings = _parse(source)
    if tree is not None:
        try:
            module = _Module(source)
            module.read(tree)
            module.judge()
            findings += module.sorted()
        except Exception as error:
            text = f"the file was not looked at in full: {type(error).__name__}: {error}"
            findings.append(_finding(1, 1, "not-checked", "warning", text[:1_000], "report it"))
    return _answer(findings)


def _answer(findings):
    return json.dumps(findings).encode("utf-8")


def _finding(line, column, rule, severity, what, fix):
    return {
        "line": line,
        "column": column,
        "rule": rule,
        "severity": severity,
        "what": what,
        "fix": fix,
    }


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
        return None, [_finding(line, column, "syntax-error", "error", what, "correct the syntax")]
    except (RecursionError, MemoryError):
        fix = "split the expression or the block"
        return None, [_finding(1, 1, "not-checked", "error", f"{deep} to be compiled", fix)]
    try:
        return compile(source, _NO_FILE, "exec", ast.PyCF_ONLY_AST, dont_inherit=True), []
    except (RecursionError, MemoryError):
        fix = "split the longest expression"
        return None, [_finding(1, 1, "not-checked", "warning", f"{deep} to be checked", fix)]


def _short(name):
    return name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "..."


class _Scope:
    """Names of the module, a class or a function."""

    def __init__(self, parent, is_class=False):
        self.parent = parent
        self.is_class = is_class
        # The line after which each name is bound for the first time.
        self.names = {}
        # What imported names and aliases mean; None if it is not certain.
        self.meanings = {}
        self.globals = set()

    def bind(self, name, line, meaning=None):
        if name in self.globals:
            scope = self
            while scope.parent is not None:
                scope = scope.parent
            scope.bind(name, line, meaning)
        elif name not in self.names:
            self.names[name] = line
            self.meanings[name] = meaning
        else:
            self.names[name] = min(line, self.names[name])
            if self.meanings[name] != meaning:
                self.meanings[name] = None


class _Function:
    """A function of the module or of a class, or the module's own code, with all that is in it."""

    def __init__(self, node, owner, scope):
        self.node = node
        self.name = node.name if isinstance(node, _FUNCTIONS) else ""
        self.owner = owner
        self.scope = scope
        # Names of decorators, from the outermost, None where it is not known.
        self.decorators = []
        self.parameters = []
        if isinstance(node, _FUNCTIONS):
            args = node.args
            self.parameters = [arg.arg for arg in args.posonlyargs + args.args]
        # Names that it uses, of the module, of its instance and of anything.
        self.uses = set()
        self.own_uses = set()
        self.attributes = set()
        self.sends = []
        self.floats = []
        self.changes = []
        self.awaits = []
        self.deep_awaits = []
        self.asynchronous = []
        self.yields = []
        # Variables that hold references of actors, decimals or fractions, and those that are given
        # to runners.
        self.references = set()
        self.exact = set()
        self.given = set()

    @property
    def is_async(self):
        return isinstance(self.node, ast.AsyncFunctionDef)

    @property
    def is_private(self):
        return self.name.startswith("_")

    def has(self, names):
        return any(name in names for name in self.decorators)

    @property
    def has_permission(self):
        return self.has(_PERMISSIONS)

    @property
    def continuation(self):
        return next((name for name in self.decorators if name in _CONTINUATIONS), None)

    @property
    def is_handler(self):
        """Whether the SDK puts a permission check around this method of an actor class."""
        return not self.name.startswith("__") and (self.has_permission or not self.is_private)

    @property
    def is_deferred(self):
        """Whether it may send. The outermost decorator decides."""
        for decorator, name in zip(self.node.decorator_list, self.decorators):
            if name in ("cowboy_sdk.pure", "cowboy_sdk.deferred"):
                return name == "cowboy_sdk.deferred"
            if name == "cowboy_sdk.timer":
                words = decorator.keywords if isinstance(decorator, ast.Call) else []
                return not any(
                    word.arg == "deferred" and not (_is_constant(word.value) and word.value.value)
                    for word in words
                )
        return False

    def accepts(self, count):
        """Whether it can be called with this number of positional arguments."""
        args = self.node.args
        most = len(self.parameters)
        return (
            most - len(args.defaults) <= count
            and (count <= most or args.vararg is not None)
            and all(default is not None for default in args.kw_defaults)
        )


class _Class:
    """A class at the top of the module."""

    def __init__(self, node, scope):
        self.node = node
        self.name = node.name
        self.scope = scope
        self.is_actor = False
        self.is_model = False
        self.bases = []
        self.functions = {}
        self.values = {}


class _Place:
    """Where a part of the tree is."""

    __slots__ = ("scope", "function", "owner", "depth", "in_async", "caught", "quiet", "target")

    def __init__(self, scope, function):
        self.scope = scope
        self.function = function
        # The class whose body this is.
        self.owner = None
        # How many functions inside `function`, and whether one of them is `async`.
        self.depth = 0
        self.in_async = False
        # Names of exceptions that are caught here.
        self.caught = frozenset()
        # Whether floats are given to runners here, or the variable that gets them.
        self.quiet = False
        self.target = None

    def but(self, **changes):
        place = _Place(self.scope, self.function)
        for name in self.__slots__:
            setattr(place, name, changes[name] if name in changes else getattr(self, name))
        return place


class _Module:
    """A module as it was read, and what was found in it."""

    def __init__(self, source):
        text = source.encode("utf-8").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self.lines = text.split(b"\n")
        self.scope = _Scope(None)
        self.has_star = False
        self.code = None
        self.functions = {}
        self.classes = {}
        self.all_functions = []
        # Module-level variables that hold a container, such as a list.
        self.containers = set()
        # Those that hold a float.
        self.rates = set()
        # Calls of names while the module is loaded, which may make instances.
        self.made = []
        # Names that the module gives to functions of the SDK as text, such as handlers of timers.
        self.mentioned = set()
        # Whether it defines names in ways that cannot be followed.
        self.is_dynamic = False
        # Attributes that it looks for before it uses them.
        self.guarded = set()
        # By severity, so that many warnings do not hide an error.
        self.found = {"error": {}, "warning": {}}

    # Findings.

    def report(self, severity, rule, node, what, fix):
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        found = self.found[severity]
        if len(found) < _MOST_FINDINGS:
            found.setdefault((line, offset, rule), (severity, what, fix))

    def error(self, *finding):
        self.report("error", *finding)

    def warning(self, *finding):
        self.report("warning", *finding)

    def sorted(self):
        findings = []
        found = self.found["warning"] | self.found["error"]
        for (line, offset, rule), (severity, what, fix) in sorted(found.items()):
            before = self.lines[line - 1][:offset] if line <= len(self.lines) else b""
            column = len(before.decode("utf-8", "ignore")) + 1
            findings.append(_finding(line, column, rule, severity, what, fix))
        return findings

    # Names.

    def meaning(self, name, scope):
        """What a name means: a dotted name, or None."""
        first = scope
        while scope is not None:
            if name in scope.names and (scope is first or not scope.is_class):
                return self.follow(scope.meanings[name])
            scope = scope.parent
        return self.unbound(name)

    def follow(self, meaning):
        """The end of a chain of aliases at the top of the module."""
        for _ in range(_FOLLOWED):
            if not isinstance(meaning, ast.AST):
                return meaning
            chain = _chain(meaning)
            if chain is None:
                return None
            if chain[0] in self.scope.names:
                start = self.scope.meanings[chain[0]]
            else:
                start = self.unbound(chain[0])
            if len(chain) > 1:
                return _home(".".join([start, *chain[1:]])) if isinstance(start, str) else None
            meaning = start
        return None

    def unbound(self, name):
        if self.has_star and name in cowboy_sdk.__all__:
            return f"cowboy_sdk.{name}"
        return f"builtins.{name}"

    def resolve(self, node, scope):
        """What an expression means: a dotted name, or None."""
        chain = _chain(node)
        if chain is None:
            return None
        start = self.meaning(chain[0], scope)
        return None if start is None else _home(".".join([start, *chain[1:]]))

    # Reading.

    def read(self, tree):
        self.bind(tree)
        self.code = _Function(tree, None, self.scope)
        self.walk(tree, _Place(self.scope, self.code))
        for cls in self.classes.values():
            cls.is_actor = any(
                self.resolve(_called(node), self.scope) == "cowboy_sdk.actor"
                for node in cls.node.decorator_list
            )
        for cls in self.classes.values():
            cls.is_model = any(
                self.resolve(base, self.scope) == "cowboy_sdk.CowboyModel"
                for ancestor in self.ancestry(cls)
                for base in ancestor.node.bases
            )

    def bind(self, tree):
        """Finds the names of all scopes."""
        todo = [(tree, self.scope)]
        while todo:
            node, scope = todo.pop()
            if isinstance(node, (*_FUNCTIONS, ast.Lambda)):
                inner = _Scope(scope)
                node.inner = inner
                for arg in _arguments(node.args):
                    inner.bind(arg.arg, arg.lineno)
                if not isinstance(node, ast.Lambda):
                    scope.bind(node.name, node.lineno)
                body = node.body if isinstance(node.body, list) else [node.body]
                # Before the names are bound, because `global` may come after a nested use.
                for part in _walk(body, into_functions=False):
                    if isinstance(part, ast.Global):
                        inner.globals.update(part.names)
                todo += [(part, inner) for part in reversed(body)]
                todo += [(part, scope) for part in _outside(node)]
            elif isinstance(node, ast.ClassDef):
                # Its name is bound after its body has run.
                scope.bind(node.name, node.end_lineno)
                node.inner = _Scope(scope, is_class=True)
                todo += [(part, node.inner) for part in reversed(node.body)]
                todo += [(part, scope) for part in _outside(node)]
            else:
                self.bind_one(node, scope)
                todo += [(part, scope) for part in _children(node)]

    def bind_one(self, node, scope):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            scope.bind(node.id, line, getattr(node, "alias", None))
        elif isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            if len(node.targets) == 1 and isinstance(target, ast.Name) and scope.parent is None:
                if isinstance(value, (ast.Name, ast.Attribute)):
                    target.alias = value
                elif _is_constant(value, float):
                    self.rates.add(target.id)
                elif self.is_container(value, scope):
                    self.containers.add(target.id)
        elif isinstance(node, ast.AnnAssign):
            if isinstance(node.target, ast.Name) and scope.parent is None:
                if node.value is not None and self.is_container(node.value, scope):
                    self.containers.add(node.target.id)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                meaning = alias.name if alias.asname else top
                scope.bind(alias.asname or top, line, _home(meaning))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":
                    self.has_star |= node.module == "cowboy_sdk" and not node.level
                    continue
                meaning = None if node.level else _home(f"{node.module}.{alias.name}")
                scope.bind(alias.asname or alias.name, line, meaning)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
            if node.name:
                scope.bind(node.name, line)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            scope.bind(node.rest, line)

    def is_container(self, node, scope):
        if isinstance(node, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)):
            return True
        return isinstance(node, ast.Call) and self.resolve(node.func, scope) in _CONTAINERS

    def walk(self, tree, place):
        """Visits each part of the tree once, in the order of the source."""
        todo = [(tree, place)]
        while todo:
            node, place = todo.pop()
            todo += reversed(self.visit(node, place))

    def visit(self, node, place):
        """Notes what one node does, and gives its parts with their places."""
        function = place.function
        if isinstance(node, (*_FUNCTIONS, ast.Lambda)):
            return self.visit_function(node, place)
        if isinstance(node, ast.ClassDef):
            return self.visit_class(node, place)
        if isinstance(node, (ast.Try, getattr(ast, "TryStar", ast.Try))):
            return self.visit_try(node, place)
        if isinstance(node, ast.Call):
            return self.visit_call(node, place)
        if isinstance(node, ast.Name):
            self.visit_name(node, place)
        elif isinstance(node, ast.Attribute):
            self.visit_attribute(node, place)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.visit_import(node, place)
        elif isinstance(node, ast.Constant):
            if type(node.value) in (float, complex) and not place.quiet:
                what = f"{_short(repr(node.value))} is a floating-point number"
                self.note_float(node, place, what, _WHOLE)
        elif isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Div):
            left = node.left if isinstance(node, ast.BinOp) else node.target
            sides = (left, node.right if isinstance(node, ast.BinOp) else node.value)
            if not place.quiet and not any(self.is_exact(side, place) for side in sides):
                self.note_float(node, place, "`/` gives a floating-point number", "`//`")
        elif isinstance(node, ast.Await):
            (function.deep_awaits if place.depth else function.awaits).append(node)
        elif isinstance(node, (ast.Yield, ast.YieldFrom)):
            if not place.in_async:
                function.yields.append(node)
        elif isinstance(node, (ast.AsyncFor, ast.AsyncWith)):
            if not place.depth:
                function.asynchronous.append(node)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            if not place.depth and any(part.is_async for part in node.generators):
                function.asynchronous.append(node)
        elif isinstance(node, ast.Subscript):
            if not isinstance(node.ctx, ast.Load):
                self.note_change(node, node.value, place)
        if isinstance(node, ast.With):
            for item in node.items:
                call = item.context_expr
                if isinstance(call, ast.Call):
                    if self.resolve(call.func, place.scope) == "contextlib.suppress":
                        place = place.but(caught=place.caught | _exceptions(call.args))
        if isinstance(node, ast.Assign):
            target = node.targets[0]
            if len(node.targets) == 1 and isinstance(target, ast.Name):
                if self.is_exact(node.value, place):
                    function.exact.add(target.id)
                if self.is_reference(node.value, place):
                    function.references.add(target.id)
                return [(target, place), (node.value, place.but(target=target.id))]
        if isinstance(node, ast.AnnAssign):
            return [(part, place) for part in (node.target, node.value) if part is not None]
        return [(part, place) for part in _children(node)]

    def visit_function(self, node, place):
        parts = [(part, place) for part in _outside(node)]
        if isinstance(node, ast.Lambda):
            inner = place.but(scope=node.inner, owner=None)
            inner.depth += 1
            return parts + [(node.body, inner)]
        if place.function is not self.code:
            is_async = isinstance(node, ast.AsyncFunctionDef)
            inner = place.but(
                scope=node.inner,
                owner=None,
                depth=place.depth + 1,
                in_async=place.in_async or is_async,
                caught=frozenset(),
            )
            return parts + [(part, inner) for part in node.body]
        owner = place.owner
        function = _Function(node, owner, node.inner)
        function.decorators = [
            self.resolve(_called(decorator), place.scope) for decorator in node.decorator_list
        ]
        self.all_functions.append(function)
        if isinstance(owner, _Class):
            owner.functions[node.name] = function
        elif owner is None:
            self.functions[node.name] = function
        inner = _Place(node.inner, function)
        return parts + [(part, inner) for part in node.body]

    def visit_class(self, node, place):
        # Only classes at the top of the module can be actors; of others the methods are looked at.
        if place.function is self.code and place.owner is None:
            cls = _Class(node, node.inner)
            cls.bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            self.classes[node.name] = cls
            for part in node.body:
                for target in _targets(part):
                    cls.values.setdefault(target.id, target)
            owner = cls
        else:
            owner = node
        inner = place.but(scope=node.inner, owner=owner)
        parts = [(part, place) for part in _outside(node)]
        return parts + [(part, inner) for part in node.body]

    def visit_try(self, node, place):
        types = [handler.type for handler in node.handlers]
        caught = place.caught | _exceptions(types) if types else place.caught
        inside = place.but(caught=caught)
        # A handler of an import's failure is there for machines that have no such module.
        parts = [(part, inside) for part in node.body]
        parts += [(part, inside) for handler in node.handlers for part in handler.body]
        parts += [(handler.type, place) for handler in node.handlers if handler.type is not None]
        return parts + [(part, place) for part in node.orelse + node.finalbody]

    def visit_name(self, node, place):
        if not isinstance(node.ctx, ast.Load):
            if node.id in place.scope.globals and place.function is not self.code:
                place.function.changes.append((node, node.id))
        elif self.is_of_module(node.id, place.scope):
            place.function.uses.add(node.id)
            if node.id in self.rates and not place.quiet:
                what = f"{_short(node.id)} is a floating-point number"
                self.note_float(node, place, what, _WHOLE)

    def is_of_module(self, name, scope):
        """Whether a name is one of the module, and not of the function or class."""
        first = scope
        while scope.parent is not None:
            if name in scope.names and (scope is first or not scope.is_class):
                return False
            scope = scope.parent
        return name in scope.names

    def visit_attribute(self, node, place):
        function = place.function
        function.attributes.add(node.attr)
        if self.is_self(node.value, place):
            if isinstance(node.ctx, ast.Load):
                function.own_uses.add(node.attr)
            else:
                function.changes.append((node, "self." + node.attr))
            return
        if not isinstance(node.ctx, ast.Load):
            return
        name = self.resolve(node, place.scope)
        if name is None:
            return
        module, _, attribute = name.rpartition(".")
        if module in ("math", "statistics") and attribute not in _EXACT_MATH and not place.quiet:
            self.note_float(node, place, f"{name} is floating point", "whole numbers, math.isqrt")
        self.look_up(node, module, attribute, place)

    def look_up(self, node, module, attribute, place):
        if place.caught & {"AttributeError", "Exception", "BaseException"}:
            return
        found = _object(module)
        if not isinstance(found, types.ModuleType) or attribute in self.guarded:
            return
        if not hasattr(found, attribute):
            what = f"{module} has no {_short(attribute)}"
            fix = "correct the name, or see the SDK's release notes"
            self.error("unknown-name", node, what, fix)

    def is_self(self, node, place):
        """Whether it is the instance of the method that this is in."""
        function = place.function
        return (
            isinstance(node, ast.Name)
            and function.owner is not None
            and bool(function.parameters)
            and node.id == function.parameters[0]
            and not function.has({"builtins.staticmethod", "builtins.classmethod"})
        )

    def visit_import(self, node, place):
        failures = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
        report = self.warning if place.caught & failures else self.error
        if isinstance(node, ast.ImportFrom) and node.level:
            what = "an actor is a single file, so a relative import finds nothing"
            report("import-refused", node, what, "put the code into this file")
            return
        if isinstance(node, ast.Import):
            names = [(alias.name, None) for alias in node.names]
        else:
            names = [(node.module, alias.name) for alias in node.names]
        for module, name in names:
            top, _, rest = module.partition(".")
            if top not in IMPORTABLE:
                what = f"actors cannot import {_short(top)}"
                fix = _INSTEAD.get(top, "actors have the SDK and a part of the standard library")
                report("import-refused", node, what, fix)
            elif top == "cowboy_sdk" and (rest in _FOR_TESTS or not rest and name in _FOR_TESTS):
                what = f"cowboy_sdk.{rest or name} is for tests and is not in the machine"
                report("import-refused", node, what, "keep tests in a file of their own")
            elif _module(top) is None:
                continue
            elif rest and _module(module) is None:
                what = f"the machine has no module {_short(module)}"
                report("import-refused", node, what, "correct the name")
            elif name not in (None, "*") and not _has(module, name):
                what = f"{_short(module)} has no {_short(name)}"
                fix = "correct the name, or see the SDK's release notes"
                report("unknown-name", node, what, fix)

    def visit_call(self, node, place):
        function = place.function
        name = self.resolve(node.func, place.scope)
        if name is not None:
            self.note_call(node, name, place)
        target = node.func
        if isinstance(target, ast.Attribute):
            if target.attr in _CHANGES:
                self.note_change(node, target.value, place)
            if target.attr == "send" and self.is_reference(target.value, place):
                function.sends.append((node, "send"))
        elif isinstance(target, ast.Name) and self.is_loading(place) and not place.caught:
            self.made.append((node, target.id))
        parts = [(node.func, place)] + [(part, place) for part in node.args]
        quiet = name is not None and name.startswith("cowboy_sdk.runner.")
        for word in node.keywords:
            if quiet and isinstance(word.value, ast.Name):
                function.given.add(word.value.id)
            parts.append((word.value, place.but(quiet=True) if quiet else place))
        return parts

    def is_loading(self, place):
        """Whether this runs while the module is loaded."""
        return place.function is self.code and not place.depth

    def is_reference(self, node, place):
        """Whether it is a reference of another actor."""
        if isinstance(node, ast.Name):
            return node.id in place.function.references
        return isinstance(node, ast.Call) and (
            self.resolve(node.func, place.scope) == "cowboy_sdk.ActorRef"
        )

    def note_call(self, node, name, place):
        function = place.function
        if name in _IMPURE:
            function.sends.append((node, name.rpartition(".")[2]))
        if name in _ABSENT:
            self.report_absent(node, name)
        if name in _ASKS and self.is_loading(place) and not place.caught:
            what = "the host cannot be asked while the module is loaded"
            self.error("asks-while-loading", node, what, "ask in the handler")
        if name in _FLOAT_CALLS and not place.quiet:
            short = name.rpartition(".")[2]
            what = f"{short}() gives a floating-point number"
            self.note_float(node, place, what, _FLOAT_CALLS[name])
        if name in ("builtins.exec", "builtins.globals", "builtins.vars"):
            self.is_dynamic = True
        if name == "builtins.print":
            what = "the output of print goes nowhere"
            self.warning("no-output", node, what, "emit an event: runtime.emit_event(name, value)")
        if name == "builtins.open":
            what = "open raises PermissionError: actors have no files"
            self.warning("no-files", node, what, "keep data in self.storage")
        if name in ("builtins.hasattr", "builtins.getattr") and len(node.args) > 1:
            if _is_constant(node.args[1], _STRINGS):
                self.guarded.add(node.args[1].value)
        if name.startswith("cowboy_sdk."):
            values = [*node.args, *(word.value for word in node.keywords)]
            for table in [value for value in values if isinstance(value, ast.Dict)]:
                values += table.values
            for value in values:
                if _is_constant(value, _STRINGS):
                    self.mentioned.add(value.value)
                elif isinstance(value, ast.Attribute):
                    self.mentioned.add(value.attr)

    def report_absent(self, node, name):
        what = f"this devnet has no {_ABSENT[name]}: {name.rpartition('.')[2]} is refused"
        self.warning("not-on-devnet", node, what, "leave it out on this devnet")

    def note_float(self, node, place, what, instead):
        floats = place.function.floats
        # One for each line, because a formula is full of them.
        if place.function is not self.code and not (floats and floats[-1][0].lineno == node.lineno):
            floats.append((node, place.target, what, instead))

    def is_exact(self, node, place):
        """Whether an operand is a decimal or a fraction, as far as can be seen."""
        for _ in range(_FOLLOWED):
            if isinstance(node, ast.Name):
                return node.id in place.function.exact
            if isinstance(node, ast.Call):
                return self.resolve(node.func, place.scope) in _EXACT_TYPES
            if not isinstance(node, ast.BinOp):
                return False
            right = node.right
            if isinstance(right, ast.Name) and right.id in place.function.exact:
                return True
            node = node.left
        return False

    def note_change(self, node, value, place):
        """A change of what `value` holds."""
        if isinstance(value, ast.Name):
            if place.function is not self.code and self.is_of_module(value.id, place.scope):
                place.function.changes.append((node, value.id))
            return
        if isinstance(value, ast.Call):
            called = value.func
            is_get = isinstance(called, ast.Attribute) and called.attr == "get"
            stored = called.value if is_get else None
        else:
            stored = value.value if isinstance(value, ast.Subscript) else None
        if isinstance(stored, ast.Attribute) and stored.attr == "storage":
            if self.is_self(stored.value, place):
                what = "this changes a copy: self.storage decodes the value each time it is read"
                fix = "keep it in a variable, change it, and store it again under its key"
                self.warning("storage-copy", node, what, fix)

    # Judging.

    def ancestry(self, cls):
        """A class and its bases in this module, nearest first."""
        found, todo = [], [cls]
        while todo and len(found) < _FOLLOWED:
            cls = todo.pop(0)
            if cls not in found:
                found.append(cls)
                todo += [self.classes[name] for name in cls.bases if name in self.classes]
        return found

    def methods(self, cls):
        """The methods of a class with those that it inherits inside this module."""
        methods = {}
        for ancestor in self.ancestry(cls):
            for name, function in ancestor.functions.items():
                methods.setdefault(name, function)
        return methods

    def judge(self):
        actors = [cls for cls in self.classes.values() if cls.is_actor]
        self.actors = {cls.name: (cls, self.methods(cls)) for cls in actors}
        # Functions of actor classes, with those of their bases.
        self.handlers = {
            id(function): function
            for _, methods in self.actors.values()
            for function in methods.values()
        }
        self.handler_names = {name for _, methods in self.actors.values() for name in methods}
        # Methods of the actors that inherit from a class.
        self.heirs = {}
        for cls, methods in self.actors.values():
            for base in self.ancestry(cls)[1:]:
                self.heirs.setdefault(id(base), []).append(methods)
        for function in self.all_functions:
            self.judge_decorators(function)
            if function.continuation:
                _Continuation(self, function).judge()
        for cls in self.classes.values():
            for decorator in cls.node.decorator_list:
                name = self.resolve(_called(decorator), self.scope) or ""
                if name.startswith("cowboy_sdk."):
                    self.judge_decorator(decorator, name, None)
            if cls.is_model:
                self.judge_model(cls)
        for cls, methods in self.actors.values():
            self.judge_actor(cls, methods)
        self.judge_init()
        for function in self.functions.values():
            self.judge_module_function(function)
        self.judge_ambiguity()
        self.judge_purity()
        self.judge_reachable()
        for node, name in self.made:
            if name in self.actors:
                what = f"{_short(name)}() asks the host, which refuses while the module is loaded"
                self.error("asks-while-loading", node, what, f"def _a(): return {_short(name)}()")

    def judge_decorators(self, function):
        for decorator, name in zip(function.node.decorator_list, function.decorators):
            if name is not None and name.startswith("cowboy_sdk."):
                self.judge_decorator(decorator, name, function)
                if name in _ABSENT:
                    self.report_absent(decorator, name)

    def judge_decorator(self, decorator, name, function):
        refused = _refusal(decorator, name, function)
        if refused is not None:
            short = name.partition(".")[2]
            fix = "see the SDK's manual for its arguments"
            self.error("decorator-arguments", decorator, f"@{short} refuses this: {refused}", fix)

    def judge_model(self, cls):
        default = None
        for part in cls.node.body:
            if not isinstance(part, ast.AnnAssign) or not isinstance(part.target, ast.Name):
                continue
            field, kind = _short(part.target.id), part.annotation
            text = kind.value if _is_constant(kind, str) else _last(kind)
            if isinstance(kind, ast.Subscript):
                text = {"ClassVar": "ClassVar", "InitVar": "InitVar"}.get(_last(kind.value))
            if text == "KW_ONLY":
                break
            if text in ("ClassVar", "InitVar"):
                continue
            if text in ("set", "frozenset") and text not in self.scope.names:
                what = f"{field}: the SDK refuses fields of type {text} (E1101)"
                self.error("model-field", part, what, "use list, or cowboy_sdk.ordered_set")
            value = part.value
            if isinstance(value, (ast.List, ast.Dict, ast.Set)):
                what = f"{field}: a list, dict or set cannot be a default"
                self.error("model-field", part, what, "dataclasses.field(default_factory=list)")
            if isinstance(value, ast.Call):
                # A call of `field` may say anything.
                break
            if value is not None:
                default = field
            elif default is not None:
                what = f"{field} has no default, but follows {default}, which has one"
                self.error("model-field", part, what, "move the fields with defaults to the end")

    def judge_actor(self, cls, methods):
        for ancestor in self.ancestry(cls):
            if ancestor is cls or not ancestor.is_actor:
                for name in ("address", "storage", "sender"):
                    taken = ancestor.functions.get(name)
                    node = ancestor.values.get(name) if taken is None else taken.node
                    if node is not None:
                        what = f"the SDK refuses a `{name}` in an actor class: it makes it itself"
                        self.error("reserved-name", node, what, "give it another name")
        has_events = any(
            function.has({"cowboy_sdk.on_event", "cowboy_sdk.on_stream"})
            for function in methods.values()
        )
        called = set().union(*(function.own_uses for function in methods.values()))
        for name, function in methods.items():
            if name == "__init__":
                self.judge_constructor(cls, methods, function)
            if not function.is_handler:
                continue
            if self.judge_kind(function):
                continue
            if function.is_async and not function.continuation:
                self.report_async(function)
            if not function.has_permission:
                self.judge_permission(function, name in called, has_events)
            expected = function.has_permission or name in _OF_THE_CHAIN
            if expected or function.has({"cowboy_sdk.timer", "cowboy_sdk.on_event"}):
                if not function.continuation and None not in function.decorators:
                    self.judge_signature(function, 2)

    def judge_init(self):
        if not self.actors or self.may_define("init"):
            return
        for cls, methods in self.actors.values():
            for name, function in methods.items():
                # The SDK makes an `init` for classes that subscribe to something.
                if name == "init" or function.has({"cowboy_sdk.on_event", "cowboy_sdk.on_stream"}):
                    return
            if any("init" in ancestor.values for ancestor in self.ancestry(cls)):
                return
        cls, _ = next(iter(self.actors.values()))
        what = "a deployment calls `init`, which this module does not have"
        self.warning("no-init", cls.node, what, "write one, or deploy it with --no-init")

    def may_define(self, name):
        """Whether the module has a function of this name, as far as can be seen."""
        return name in self.scope.names or self.is_dynamic

    def judge_constructor(self, cls, methods, function):
        needed = any(
            other.is_handler and not self.may_define(other.name) for other in methods.values()
        )
        if needed and not function.accepts(1):
            what = f"the chain makes a {_short(cls.name)} without arguments"
            fix = "give the arguments defaults, or write a function of the module for each handler"
            self.warning("signature", function.node, what, fix)

    def judge_kind(self, function):
        for name in function.decorators:
            if name in _NOT_METHODS:
                what = f"the SDK refuses a public {name.rpartition('.')[2]} in an actor class"
                fix = "make it a plain method, or start its name with _"
                self.error("handler-kind", function.node, what, fix)
                return True
            if name not in _TAGS:
                break
        # A property is data for the actor itself.
        return any(name is None or name == "builtins.property" for name in function.decorators)

    def report_async(self, function):
        what = f"{_short(function.name)} returns a coroutine, which is no result"
        fix = "@runner.continuation if it awaits runners, else a plain def"
        self.warning("async-handler", function.node, what, fix)

    def judge_permission(self, function, is_called, has_events):
        name, node = _short(function.name), function.node
        if function.name == "init":
            shim = self.functions.get("init")
            if not self.may_define("init") or shim is not None and "init" in shim.attributes:
                what = "init needs a permission too: without one the deployment is denied (E1230)"
                self.error("init-denied", node, what, "@public")
            return
        if function.has({"cowboy_sdk.timer", "cowboy_sdk.on_event", "cowboy_sdk.on_stream"}):
            return
        if function.name in _OF_THE_ACTOR or function.name in self.mentioned:
            return
        if function.name == "handle_message":
            if not has_events:
                what = "handle_message has no permission: messages of others are denied (E1230)"
                fix = "@public, or @callable_by(...) with their addresses"
                self.warning("not-public", node, what, fix)
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
        self.warning("not-public", node, what, fix)

    def judge_signature(self, function, count):
        if not function.accepts(count):
            what = f"{_short(function.name)} is called with exactly one payload"
            fix = f"def {_short(function.name)}({'self, ' * (count - 1)}payload)"
            self.warning("signature", function.node, what, fix)

    def judge_module_function(self, function):
        if function.continuation:
            return
        is_shim = function.name in self.handler_names
        if function.has_permission:
            what = f"the permission of {_short(function.name)} does nothing: anyone can call it"
            fix = "make it a method of an @actor class"
            self.warning("permission-ignored", function.node, what, fix)
        if function.has_permission or is_shim or function.name in _OF_THE_CHAIN:
            if None not in function.decorators:
                self.judge_signature(function, 1)
        if function.is_async and (is_shim or not function.is_private):
            self.report_async(function)

    def judge_ambiguity(self):
        owners = {}
        for cls, methods in self.actors.values():
            for name, function in methods.items():
                if not function.is_handler:
                    continue
                names = [name]
                if function.continuation and function.awaits:
                    names.append(name + "__resume")
                for name in names:
                    owners.setdefault(name, []).append((cls, function))
        for name, found in owners.items():
            if len(found) < 2 or self.may_define(name):
                continue
            # The function may be inherited, and then the class is the place.
            cls, function = found[-1]
            node = function.node if function.owner is cls else cls.node
            classes = " and ".join(_short(cls.name) for cls, _ in found[:2])
            what = f"{_short(name)} is in {classes}, so a call of it is refused"
            fix = f"def {_short(name)}(p): return {_short(cls.name)}().{_short(name)}(p)"
            self.error("ambiguous-handler", node, what, f"outside of the classes: {fix}")

    # Calls inside the module.

    def reach(self, starts, passes=lambda function: True):
        """All functions that `starts` reach, each with the start that reached it."""
        found, entered = {}, set()
        todo = [(function, function) for function in starts]
        while todo:
            function, start = todo.pop()
            if id(function) in found:
                continue
            found[id(function)] = start
            for called in self.called_by(function, entered):
                if passes(called):
                    todo.append((called, start))
        return found

    def called_by(self, function, entered):
        """Functions that this one may call, without those of classes that were entered before."""
        called = []
        for name in function.uses:
            if name in self.functions:
                called.append(self.functions[name])
            elif name in self.classes and name not in self.actors and name not in entered:
                entered.add(name)
                called += self.classes[name].functions.values()
        if isinstance(function.owner, _Class):
            for name in function.own_uses:
                called += self.overrides(function.owner, name)
        return called

    def overrides(self, owner, name):
        """The methods of this name that `self` may have in a method of `owner`."""
        found = [cls.functions[name] for cls in self.ancestry(owner) if name in cls.functions][:1]
        return found + [heir[name] for heir in self.heirs.get(id(owner), []) if name in heir]

    def judge_purity(self):
        """Messages in handlers of pure mode.

        The SDK sets the mode around each handler. What a handler calls runs in its mode, unless it
        is a handler too. Timers, calls and the jobs of continuations are allowed in every mode.
        """
        wrapped = {
            id(function)
            for function in self.handlers.values()
            if function.is_handler and not function.continuation
        }
        pure, free = [], []
        for function in self.handlers.values():
            if id(function) in wrapped and not function.is_deferred:
                pure.append(function)
            elif id(function) in wrapped or function.continuation:
                free.append(function)
        free += [function for function in self.functions.values() if self.is_entry(function)]
        in_pure = self.reach(pure, lambda called: self.is_helper(called, wrapped))
        in_free = self.reach(free, lambda called: self.is_helper(called, wrapped))
        for function in self.all_functions:
            start = in_pure.get(id(function))
            if start is None:
                continue
            report = self.warning if id(function) in in_free else self.error
            for node, name in function.sends:
                what = f"{name} raises in {_short(start.name)}, a handler of pure mode (E1205)"
                report("impure-send", node, what, f"@deferred on {_short(start.name)}")

    def is_helper(self, function, wrapped):
        return id(function) not in wrapped and not function.continuation

    def is_entry(self, function):
        """Whether the chain can call this function of the module."""
        return not function.is_private and function.accepts(1)

    def judge_reachable(self):
        starts = [
            function
            for function in self.handlers.values()
            if function.is_handler or function.continuation
        ]
        starts += [function for function in self.functions.values() if self.is_entry(function)]
        reached = self.reach(starts)
        for function in self.all_functions:
            if id(function) not in reached:
                continue
            for node, target, what, instead in function.floats:
                if target is None or target not in function.given:
                    fix = f"use {instead}; a float can be stored if it is finite"
                    self.warning("float", node, f"{what}, which rounds", fix)
            self.judge_changes(function)

    def judge_changes(self, function):
        """State outside the store: every call gets a fresh machine."""
        is_method = isinstance(function.owner, _Class) and (
            id(function) in self.handlers or function.owner.is_actor
        )
        for node, name in function.changes:
            variable, _, attribute = name.rpartition(".")
            if not variable:
                # A function that is used while the module is loaded may fill a table.
                if name not in self.containers and not isinstance(node, ast.Name):
                    continue
                if function.name in self.code.uses:
                    continue
                what = f"{_short(name)} is lost after this call: every call gets a fresh module"
                self.warning("lost-state", node, what, "keep it in self.storage")
            elif is_method and function.name != "__init__":
                if attribute in ("address", "storage", "sender"):
                    what = f"self.{attribute} cannot be set: the SDK makes it"
                    self.error("reserved-name", node, what, "use another name")
                # The setter of a property may put it into the store.
                elif not any(attribute in cls.functions for cls in self.ancestry(function.owner)):
                    short = _short(attribute)
                    what = f"self.{short} is lost after this call: every call gets a fresh instance"
                    self.warning("lost-state", node, what, f'self.storage["{short}"] = ...')


class _Continuation:
    """A function that the SDK splits at its awaits.

    The part before the first await becomes the handler, and the parts after each await become
    branches of `<name>__resume`, which is called in a later block with the runner's reply. Only
    the capture, under the name `ctx`, goes from one part to the next. The functions are made from
    the source's text, with a copy of the module's names at that moment.
    """

    def __init__(self, module, function):
        self.module = module
        self.function = function
        self.node = function.node
        self.name = _short(function.name)
        # Statements that the SDK splits at.
        self.splits = [
            index
            for index, part in enumerate(self.node.body)
            if isinstance(part, (ast.Assign, ast.Expr)) and isinstance(part.value, ast.Await)
        ]

    def error(self, *finding):
        self.module.error(*finding)

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
        needed = _CONTINUATIONS[kind]
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
        if len(args.args) != 2 or args.posonlyargs:
            what = f"{self.name} must take exactly `self` and a payload: the SDK keeps nothing else"
            self.error(name, node, what, f"async def {self.name}(self, msg)")
        first = min(part.lineno for part in [node, *node.decorator_list])
        indent = self.module.lines[node.lineno - 1][: node.col_offset]
        for number in range(first, (node.end_lineno or first) + 1):
            line = self.module.lines[number - 1]
            if indent and line.strip() and not line.startswith(indent):
                what = "the SDK cuts out the function's text, and this line is not indented (E1202)"
                self.error(name, _At(number), what, "indent it, or move the text to a constant")
                break

    def is_bound(self, name):
        """Whether the module has this name when the function is compiled."""
        names = self.module.scope.names
        if name not in names:
            return self.module.has_star and name in cowboy_sdk.__all__
        return names[name] < self.node.lineno

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
        job = _last(target)
        if job is None:
            what = "an await must be of a call such as runner.llm(...) (E1202)"
            self.error("await-target", node, what, "await runner.llm(...)")
        elif job in _ABSENT_JOBS:
            what = f"this devnet has no runner jobs of type `{job}`"
            fix = "runner.llm, runner.http or runner.mcp"
            self.module.warning("not-on-devnet", node, what, fix)
        elif job not in _JOBS:
            what = f"an await asks runners for a job, and they do no jobs of type `{_short(job)}`"
            fix = "call it without await, or await runner.llm, runner.http or runner.mcp"
            self.error("await-target", node, what, fix)

    def judge_parts(self):
        splits, parts = set(self.splits), [[]]
        for index, statement in enumerate(self.node.body):
            if index not in splits:
                parts[-1].append(statement)
                continue
            # The job's arguments belong to the part before it. The SDK drops all targets if
            # there are several.
            targets = getattr(statement, "targets", [])
            parts[-1].append(statement.value)
            parts.append(list(targets) if len(targets) == 1 else [])
        for part in parts[1:-1]:
            for node in _walk(part, into_functions=False):
                if isinstance(node, ast.Return):
                    what = "this leaves the continuation's record; an actor can have 100 of them"
                    fix = "go on to the next await, or split the continuation"
                    self.module.warning("open-continuation", node, what, fix)
        names = [_Names(part) for part in parts]
        capture = self.judge_capture(names)
        self.judge_names(names, capture)

    def judge_capture(self, names):
        """The variable that holds the capture, as the SDK finds it."""
        start = self.node.body[: self.splits[0]]
        for part in start:
            name = _captured(part)
            if name is not None:
                if name != "ctx" and any(name in later.loads for later in names[1:]):
                    what = f"after an await the capture is `ctx`, and not `{_short(name)}`"
                    self.error("capture-name", part, what, "ctx = capture()")
                return name
        bound = names[0].stores.union(self.function.parameters, self.module.scope.names)
        if start and "ctx" not in bound:
            what = "the SDK saves `ctx` before the first await, and it is not defined"
            self.error("capture-name", self.node.body[self.splits[0]], what, "ctx = capture()")
        return "ctx"

    def judge_names(self, names, capture):
        function, module = self.function, self.module
        local = set(function.parameters).union(*(part.stores for part in names))
        later = set().union(*(part.stores for part in names[1:]))
        kept = {"ctx", capture, *function.parameters[:1]}
        told = set()
        for part in names[1:]:
            for name, node in part.loads.items():
                if name not in local or name in part.stores or name in kept or name in told:
                    continue
                told.add(name)
                short = _short(name)
                if name == "msg":
                    if name in function.parameters:
                        what = "after an await `msg` is the runner's reply, not the argument"
                        module.warning("lost-local", node, what, "ctx.msg = msg before the await")
                elif name in later or not (name in module.scope.names or name in _BUILTINS):
                    what = f"`{short}` does not outlive the await: after it the name is not defined"
                    self.error("lost-local", node, what, f"ctx.{short} = ... before the await")
        for part in names:
            for name, node in part.loads.items():
                bound = module.scope.names.get(name)
                if bound is None or name in local or name in _BUILTINS or name in told:
                    continue
                if bound >= self.node.lineno:
                    told.add(name)
                    short = _short(name)
                    what = f"the SDK compiles this before `{short}` is defined, and never finds it"
                    self.error("late-name", node, what, f"define {short} before the class")


class _Names:
    """The names that a part of a function uses and binds, with their first places."""

    def __init__(self, parts):
        self.loads = {}
        self.stores = set()
        for node in _walk(parts):
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    self.loads.setdefault(node.id, node)
                else:
                    self.stores.add(node.id)
            elif isinstance(node, ast.arg):
                self.stores.add(node.arg)
            elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                self.stores.add(node.name)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    self.stores.add(alias.asname or alias.name.partition(".")[0])
            elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
                self.stores.add(node.name)
            elif isinstance(node, ast.MatchMapping):
                self.stores.add(node.rest)


def _captured(node):
    """The variable that a statement puts a capture into, by the SDK's rule, or None."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Name):
            return target.id if _last(node.value.func) == "capture" else None
    return None


class _At:
    """The beginning of a line."""

    def __init__(self, line):
        self.lineno = line
        self.col_offset = 0


def _refusal(decorator, name, function):
    """Why the SDK refuses a decorator as it is written, if that is certain."""
    found = _object(name)
    if not callable(found):
        return None
    call = decorator if isinstance(decorator, ast.Call) else None
    words = {} if call is None else {word.arg: word.value for word in call.keywords}
    starred = call is not None and any(isinstance(arg, ast.Starred) for arg in call.args)
    if starred or None in words:
        if name in _CONTINUATIONS and None in words:
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
    if name in _PERMISSIONS and _is_constant(decode):
        if decode.value is not None and decode.value not in _CODECS:
            return f"decode must be one of {', '.join(_CODECS)}"
        if decode.value not in (None, "raw") and getattr(function, "name", "") == "on_fork":
            return "on_fork gets 20 raw bytes"
    if name == "cowboy_sdk.callable_by":
        if not args:
            return "it needs at least one address"
        return next((text for text in map(_refused_address, args) if text), None)
    if name in ("cowboy_sdk.public", "cowboy_sdk.timer", "cowboy_sdk.reentrancy_guard"):
        is_given = _is_constant(first) and first.value is not None
        return "it takes named arguments only" if is_given else None
    if name == "cowboy_sdk.emit" and _is_constant(first) and not isinstance(first.value, str):
        return "the topic must be a text"
    if name == "cowboy_sdk.on_event":
        return _refused_event({**dict(zip(("emitter", "topic", "gas", "bid"), args)), **words})
    if name in _CONTINUATIONS:
        return _refused_options(name, args, words)
    return None


def _refused_address(node):
    if not _is_constant(node):
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
    if _is_constant(topic) and not isinstance(topic.value, _STRINGS):
        return "the topic must be a text or bytes"
    for name in ("gas", "bid"):
        value = _integer(words.get(name))
        if value is not None and (not isinstance(value, int) or value < 0):
            return f"{name} must be a whole number, not negative"
    return None


def _refused_options(name, args, words):
    if args and (_is_constant(args[0]) and args[0].value is not None):
        return "it takes named arguments only"
    timeout, keys = words.get("timeout_blocks"), words.get("guard_keys")
    if timeout is not None and type(_integer(timeout)) is not int:
        return "timeout_blocks must be a whole number, written out (E1202)"
    if keys is None or _is_constant(keys) and keys.value is None:
        return None
    if not isinstance(keys, (ast.List, ast.Tuple)) or not all(
        _is_constant(key, _STRINGS) for key in keys.elts
    ):
        return "guard_keys must be a list of texts or bytes, written out (E1202)"
    return None


def _integer(node):
    """The value of a constant with its sign, or None."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        sign = -1 if isinstance(node.op, ast.USub) else 1
        node = node.operand
    if not _is_constant(node):
        return None
    return sign * node.value if type(node.value) is int else node.value


# The machine's modules.


def _home(name):
    """The shortest name of what the SDK offers under several."""
    return _HOMES.get(name, name)


def _module(name):
    """A module that actors can import, by its dotted name, or None."""
    if name.partition(".")[0] not in IMPORTABLE:
        return None
    try:
        return __import__(name, fromlist=("__name__",))
    except Exception:
        return None


def _object(name):
    """The object of a dotted name in the machine, or None."""
    top, *rest = name.split(".")
    found = _module(top)
    for attribute in rest:
        found = getattr(found, attribute, None)
    return found


def _has(module, name):
    return hasattr(_module(module), name) or _module(f"{module}.{name}") is not None


_BUILTINS = set(__builtins__ if isinstance(__builtins__, dict) else dir(__builtins__))


# The tree.


def _is_constant(node, kinds=object):
    return isinstance(node, ast.Constant) and isinstance(node.value, kinds)


def _called(node):
    """A decorator without its arguments."""
    return node.func if isinstance(node, ast.Call) else node


def _last(node):
    """The last part of a dotted name, or None."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _chain(node):
    """The parts of a dotted name, or None for all other expressions."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
        if len(parts) == _LONGEST_CHAIN:
            return None
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else None


def _exceptions(types):
    """The names of the exceptions that are caught."""
    names = set()
    for node in types:
        kinds = node.elts if isinstance(node, ast.Tuple) else [node]
        names.update("BaseException" if kind is None else _last(kind) or "" for kind in kinds)
    return names


def _arguments(args):
    rest = [args.vararg, args.kwarg]
    return args.posonlyargs + args.args + args.kwonlyargs + [arg for arg in rest if arg is not None]


def _outside(node):
    """The parts of a function or class that run when it is defined, without annotations."""
    parts = list(getattr(node, "decorator_list", []))
    if isinstance(node, ast.ClassDef):
        return parts + node.bases + [word.value for word in node.keywords]
    defaults = node.args.defaults + [part for part in node.args.kw_defaults if part is not None]
    return parts + defaults


def _targets(node):
    """The names that a statement assigns to."""
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    else:
        targets = []
    return [target for target in targets if isinstance(target, ast.Name)]


def _is_dead(node):
    """Whether a condition never holds in the machine: `__name__ == "__main__"`, TYPE_CHECKING."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return (
            len(sides) == 2
            and isinstance(node.ops[0], ast.Eq)
            and any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
            and any(_is_constant(side, str) for side in sides)
        )
    return _last(node) == "TYPE_CHECKING"


def _children(node):
    """The parts of a node, without what never runs."""
    if isinstance(node, ast.If) and _is_dead(node.test):
        return node.orelse
    return list(ast.iter_child_nodes(node))


def _walk(parts, into_functions=True):
    """All nodes of these parts in the order of the source, without annotations."""
    todo = list(reversed(parts))
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, (*_FUNCTIONS, ast.Lambda, ast.ClassDef)) and not into_functions:
            continue
        if isinstance(node, ast.AnnAssign):
            children = [part for part in (node.target, node.value) if part is not None]
        elif isinstance(node, ast.arg):
            children = []
        else:
            children = _children(node)
        todo += reversed(children)
