"""An actor's module as it was read: its names, functions and classes, and what was found in it."""

import ast

from check_findings import Findings
from check_names import Names
from check_tree import without_arguments

# Classes that are looked at for one class: it and the first of its bases. Without a limit, every
# class may have all classes before it as bases.
_MOST_CLASSES = 32


class Module:
    """What the rules look at, and where they report.

    `check_reader.read` fills it, and ends with `find_actors`.

    A set of actors is a whole number with one bit for each, in the order of the source. A class
    with many methods may have many heirs, and with such sets the work is linear all the same.
    """

    def __init__(self, source):
        self.findings = Findings(source)
        self.names = Names()
        self.scope = self.names.scope
        # The code outside of functions, as a function.
        self.code = None
        self.functions = {}
        self.classes = {}
        self.all_functions = []
        # Calls of names while the module is loaded, which may make instances.
        self.made = []
        # What `actor` is called with, other than as a decorator.
        self.made_actors = []
        # Names that the module gives to functions of the SDK as text, such as handlers of timers.
        self.mentioned = set()
        # Whether it defines names in ways that cannot be followed.
        self.is_dynamic = False
        # Attributes that it looks for before it uses them.
        self.guarded = set()
        # Actor classes by name, in the order of the source.
        self.actors = {}
        # Methods of actors, with those that they inherit, by `id`: those of the first actor come
        # first, and its own before those of its bases.
        self.handlers = {}
        self.handler_names = set()
        # The actor classes by number, and the classes that define something by its name.
        self._order = []
        self._definers = {}

    def error(self, rule, node, what, fix):
        self.findings.error(rule, node, what, fix)

    def warning(self, rule, node, what, fix):
        self.findings.warning(rule, node, what, fix)

    def find_actors(self):
        """Finds which classes are actors or models, and which methods each actor has."""
        by_call = {self.names.variable(node) for node in self.made_actors}
        for cls in self.classes.values():
            cls.is_actor = cls.name in by_call or any(
                self.names.resolve(without_arguments(node), self.scope) == "cowboy_sdk.actor"
                for node in cls.node.decorator_list
            )
            self._find_bases(cls)
        for cls in self.classes.values():
            cls.ancestry = _ancestry(cls)
            for name in cls.functions.keys() | cls.values.keys():
                self._definers.setdefault(name, []).append(cls)
        for cls in self.classes.values():
            cls.is_model = any(
                "cowboy_sdk.CowboyModel" in ancestor.other_bases for ancestor in cls.ancestry
            )
        self._order = [cls for cls in self.classes.values() if cls.is_actor]
        self.actors = {cls.name: cls for cls in self._order}
        self._find_methods()
        self.handler_names = {function.name for function in self.handlers.values()}

    def _find_bases(self, cls):
        for node in cls.node.bases:
            # A generic class may be given types.
            node = node.value if isinstance(node, ast.Subscript) else node
            variable = self.names.variable(node)
            if variable in self.classes:
                cls.bases.append(self.classes[variable])
            else:
                cls.other_bases.append(self.names.resolve(node, self.scope))

    def _find_methods(self):
        """Finds the actors that have a method: heirs of its class, if no nearer class hides it."""
        # For each class, those that come before it in the ancestries of actors, with these actors.
        nearer = {cls: {} for cls in self.classes.values()}
        for number, actor in enumerate(self._order):
            for index, cls in enumerate(actor.ancestry):
                cls.actors |= 1 << number
                for other in actor.ancestry[:index]:
                    nearer[cls][other] = nearer[cls].get(other, 0) | 1 << number
        found = []
        for cls in self.classes.values():
            for name, function in cls.functions.items():
                function.actors = cls.actors if cls.method(name) is function else 0
                # Whichever are fewer, because both may be as many as there are classes.
                for other in min(nearer[cls], self._definers[name], key=len):
                    if other.defines(name):
                        function.actors &= ~nearer[cls].get(other, 0)
                if function.actors:
                    found.append(function)

        def turn(function):
            first = _first(function.actors)
            return first, self._order[first].ancestry.index(function.owner)

        self.handlers = {id(function): function for function in sorted(found, key=turn)}

    def actors_of(self, actors):
        """The classes of a set of actors, in the order of the source."""
        while actors:
            yield self._order[_first(actors)]
            actors &= actors - 1

    def last_of(self, actors):
        """The last class of a set of actors."""
        return self._order[actors.bit_length() - 1]

    def method(self, cls, name):
        """The method of this name that a class has, as far as can be seen, or None."""
        definer = next((base for base in cls.ancestry if base.defines(name)), None)
        return None if definer is None else definer.method(name)

    def overrides(self, owner, name):
        """The methods of this name that `self` may have in a method of `owner`."""
        found, definers = [self.method(owner, name)], self._definers.get(name, [])
        if owner.actors.bit_count() < len(definers):
            found += [self.method(cls, name) for cls in self.actors_of(owner.actors)]
        else:
            methods = [cls.functions[name] for cls in definers if name in cls.functions]
            found += [method for method in methods if method.actors & owner.actors]
        return [method for method in found if method is not None]

    def may_define(self, name):
        """Whether the module has a function of this name, as far as can be seen."""
        return name in self.scope.names or self.is_dynamic


def _ancestry(cls):
    """A class and its bases in this module, in the order in which Python looks for a method.

    A class that several of them inherit from comes after all of these.
    """
    found = [cls]
    for base in cls.bases[:_MOST_CLASSES]:
        found += base.ancestry
    return list(reversed(dict.fromkeys(reversed(found))))[:_MOST_CLASSES]


def _first(actors):
    """The number of the first of a set of actors."""
    return (actors & -actors).bit_length() - 1
