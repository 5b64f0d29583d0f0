"""The functions and classes of a module, and places inside them."""

import ast

from check_tree import FUNCTIONS, is_constant

PERMISSIONS = {"cowboy_sdk.public", "cowboy_sdk.callable_by"}
# Decorators of continuations, with the name that the SDK's code for each uses.
CONTINUATIONS = {
    "cowboy_sdk.runner.continuation": "runner",
    "cowboy_sdk.actor.continuation": "ACTOR_RUNNER_ADDRESS",
}
# Decorators whose methods the chain calls with what others publish.
SUBSCRIPTIONS = {"cowboy_sdk.on_event", "cowboy_sdk.on_stream"}
# Names that the SDK puts into an actor.
RESERVED = ("address", "storage", "sender")


class Function:
    """A function of the module or of a class, or the module's own code, with all that is in it."""

    def __init__(self, node, owner):
        self.node = node
        self.name = node.name if isinstance(node, FUNCTIONS) else ""
        # A `Class`, the node of a class that is not at the top of the module, or None.
        self.owner = owner
        # The actors that have it as a method: a set of `Module.actors`.
        self.actors = 0
        # Names of decorators, from the outermost, None where it is not known.
        self.decorators = []
        self.parameters = []
        if isinstance(node, FUNCTIONS):
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
        return self.has(PERMISSIONS)

    @property
    def continuation(self):
        return next((name for name in self.decorators if name in CONTINUATIONS), None)

    @property
    def is_handler(self):
        """Whether the SDK puts a permission check around this method of an actor class."""
        return not self.name.startswith("__") and (self.has_permission or not self.is_private)

    @property
    def may_be_data(self):
        """Whether it may be a property, which is for the actor itself."""
        return None in self.decorators or "builtins.property" in self.decorators

    @property
    def is_deferred(self):
        """Whether it may send. The outermost decorator decides."""
        for decorator, name in zip(self.node.decorator_list, self.decorators):
            if name in ("cowboy_sdk.pure", "cowboy_sdk.deferred"):
                return name == "cowboy_sdk.deferred"
            if name == "cowboy_sdk.timer":
                words = decorator.keywords if isinstance(decorator, ast.Call) else []
                return not any(
                    word.arg == "deferred" and not (is_constant(word.value) and word.value.value)
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


class Class:
    """A class at the top of the module.

    `Module.find_actors` sets what follows from its bases.
    """

    def __init__(self, node):
        self.node = node
        self.name = node.name
        self.functions = {}
        self.values = {}
        self.is_actor = False
        self.is_model = False
        # Its bases in this module, and the names of the others, None for one that is not known.
        self.bases = []
        self.other_bases = []
        # The class and its bases in this module, in the order in which a method is looked for.
        self.ancestry = [self]
        # The actors that have it in their ancestry, itself included: a set of `Module.actors`.
        self.actors = 0

    def defines(self, name):
        return name in self.functions or name in self.values

    def method(self, name):
        """The function that the class itself has by this name, or None: it may be assigned."""
        function, value = self.functions.get(name), self.values.get(name)
        if function is not None and value is not None and value.lineno > function.node.lineno:
            return None
        return function


class Place:
    """Where a part of the tree is."""

    __slots__ = (
        "scope",
        "function",
        "owner",
        "depth",
        "in_async",
        "caught",
        "quiet",
        "target",
        "is_lazy",
    )

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
        # Whether this runs only when something asks a generator for an element.
        self.is_lazy = False

    def but(self, **changes):
        place = Place(self.scope, self.function)
        for name in self.__slots__:
            setattr(place, name, changes[name] if name in changes else getattr(self, name))
        return place

    def is_self(self, node):
        """Whether a node is the instance of the method that this is in."""
        function = self.function
        return (
            isinstance(node, ast.Name)
            and function.owner is not None
            and bool(function.parameters)
            and node.id == function.parameters[0]
            and not function.has({"builtins.staticmethod", "builtins.classmethod"})
        )
