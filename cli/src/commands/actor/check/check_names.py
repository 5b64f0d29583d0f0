"""Names: the scopes of a module, where each name is bound, and what it means.

The meaning of a name is a dotted name such as `cowboy_sdk.public` or `builtins.print`. Names are
followed through imports and simple aliases; a name that cannot be followed means None.
"""

import ast

from check_machine import exported_by
from check_tree import (
    FOLLOWED,
    FUNCTIONS,
    all_arguments,
    assignment,
    children_of,
    dotted_parts,
    is_constant,
    parts_outside,
    walk,
)

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

_CONTAINERS = {
    "builtins.bytearray",
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


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Scope:
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

    def is_of_module(self, name):
        """Whether a name that is used here is one of the module, not of a function or class."""
        scope = self
        while scope.parent is not None:
            if name in scope.names and (scope is self or not scope.is_class):
                return False
            scope = scope.parent
        return name in scope.names


class Names:
    """The names of a module.

    `bind` comes first and gives each function and class of the tree its scope as `node.inner`.
    """

    def __init__(self):
        self.scope = Scope(None)
        # Modules that are imported by `*`, each with its first line and the names that it gives.
        self._stars = {}
        # Module-level variables that hold a container, such as a list.
        self.containers = set()
        # Those that hold a float.
        self.rates = set()

    def resolve(self, node, scope):
        """What an expression means: a dotted name, or None."""
        parts = dotted_parts(node)
        if parts is None:
            return None
        start = self._meaning(parts[0], scope)
        return None if start is None else _home(".".join([start, *parts[1:]]))

    def _meaning(self, name, scope):
        first = scope
        while scope is not None:
            if name in scope.names and (scope is first or not scope.is_class):
                return self._follow(scope.meanings[name])
            scope = scope.parent
        return self._unbound(name)

    def _follow(self, meaning):
        """The end of a chain of aliases at the top of the module."""
        for _ in range(FOLLOWED):
            if not isinstance(meaning, ast.AST):
                return meaning
            parts = dotted_parts(meaning)
            if parts is None:
                return None
            if parts[0] in self.scope.names:
                start = self.scope.meanings[parts[0]]
            else:
                start = self._unbound(parts[0])
            if len(parts) > 1:
                return _home(".".join([start, *parts[1:]])) if isinstance(start, str) else None
            meaning = start
        return None

    def _unbound(self, name):
        module = self.star_of(name)
        return f"builtins.{name}" if module is None else _home(f"{module}.{name}")

    def star_of(self, name, before=None):
        """The module that gives this name by `from module import *` before a line, or None."""
        for module, (line, names) in reversed(self._stars.items()):
            if name in names and (before is None or line < before):
                return module
        return None

    def variable(self, node):
        """The module's variable that a name means, after simple aliases, or None."""
        for _ in range(FOLLOWED):
            if not isinstance(node, ast.Name):
                return None
            meaning = self.scope.meanings.get(node.id)
            if not isinstance(meaning, ast.AST):
                return node.id
            node = meaning
        return None

    def bind(self, tree):
        """Finds the names of all scopes."""
        todo = [(tree, self.scope)]
        while todo:
            node, scope = todo.pop()
            if isinstance(node, (*FUNCTIONS, ast.Lambda)):
                inner = Scope(scope)
                node.inner = inner
                for arg in all_arguments(node.args):
                    inner.bind(arg.arg, arg.lineno)
                if not isinstance(node, ast.Lambda):
                    scope.bind(node.name, node.lineno)
                body = node.body if isinstance(node.body, list) else [node.body]
                # Before the names are bound, because `global` may come after a nested use.
                for part in walk(body):
                    if isinstance(part, ast.Global):
                        inner.globals.update(part.names)
                todo += [(part, inner) for part in reversed(body)]
                todo += [(part, scope) for part in parts_outside(node)]
            elif isinstance(node, ast.ClassDef):
                # Its name is bound after its body has run.
                scope.bind(node.name, node.end_lineno)
                node.inner = Scope(scope, is_class=True)
                todo += [(part, node.inner) for part in reversed(node.body)]
                todo += [(part, scope) for part in parts_outside(node)]
            else:
                self._bind_one(node, scope)
                todo += [(part, scope) for part in children_of(node)]

    def _bind_one(self, node, scope):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            scope.bind(node.id, line, getattr(node, "alias", None))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            target, value = assignment(node)
            if target is not None and scope.parent is None:
                if isinstance(value, (ast.Name, ast.Attribute)):
                    target.alias = value
                elif is_constant(value, float):
                    self.rates.add(target.id)
                elif self.is_container(value, scope):
                    self.containers.add(target.id)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                meaning = alias.name if alias.asname else top
                scope.bind(alias.asname or top, line, _home(meaning))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":
                    if not node.level and node.module not in self._stars:
                        self._stars[node.module] = line, exported_by(node.module)
                    continue
                meaning = None if node.level else _home(f"{node.module}.{alias.name}")
                scope.bind(alias.asname or alias.name, line, meaning)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
            if node.name:
                scope.bind(node.name, line)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            scope.bind(node.rest, line)

    def is_container(self, node, scope):
        """Whether an expression gives a new container that can be changed."""
        if isinstance(node, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)):
            return True
        return isinstance(node, ast.Call) and self.resolve(node.func, scope) in _CONTAINERS


class LocalNames:
    """The names that some statements of a function load, bind and import, with the first loads.

    Inner functions, classes and comprehensions are scopes of their own: what they bind is left out.
    """

    def __init__(self, parts, scope):
        self.loads = {}
        self.stores = set()
        self.imports = set()
        self._scope = scope
        todo = [(part, scope) for part in reversed(parts)]
        while todo:
            todo += reversed(self._visit(*todo.pop()))

    def _visit(self, node, scope):
        """Notes the names of a node in this scope, and gives its parts with theirs."""
        if isinstance(node, _COMPREHENSIONS):
            return _parts_of_comprehension(node, scope)
        if isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            if not isinstance(node, ast.Lambda):
                self._store(node.name, scope)
            body = node.body if isinstance(node.body, list) else [node.body]
            parts = [(part, scope) for part in parts_outside(node)]
            return parts + [(part, node.inner) for part in body]
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                self._store(node.id, scope)
            elif not self._is_inner(node.id, scope):
                self.loads.setdefault(node.id, node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                self._store(name, scope)
                self.imports.add(name)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
            self._store(node.name, scope)
        elif isinstance(node, ast.MatchMapping):
            self._store(node.rest, scope)
        return [(part, scope) for part in children_of(node)]

    def _store(self, name, scope):
        # What a comprehension assigns with `:=` belongs to the function around it.
        while isinstance(scope, _Comprehension):
            scope = scope.parent
        if scope is self._scope:
            self.stores.add(name)

    def _is_inner(self, name, scope):
        first = scope
        while scope is not self._scope:
            if name in scope.names and (scope is first or not scope.is_class):
                return True
            scope = scope.parent
        return False


class _Comprehension(Scope):
    """Names that a comprehension iterates with."""


def _parts_of_comprehension(node, scope):
    """The parts with their scopes, without the targets. The first iterable is outside of it."""
    inner = _Comprehension(scope)
    for part in walk([generator.target for generator in node.generators]):
        if isinstance(part, ast.Name):
            inner.bind(part.id, part.lineno)
    first, *others = node.generators
    values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    parts = [(value, inner) for value in values] + [(first.iter, scope)]
    parts += [(part, inner) for part in first.ifs]
    return parts + [(part, inner) for other in others for part in (other.iter, *other.ifs)]


def _home(name):
    """The shortest name of what the SDK offers under several."""
    return _HOMES.get(name, name)
