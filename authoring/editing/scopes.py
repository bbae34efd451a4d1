"""Which declaration a name means: components are entered from inside, by inheritance, and by instances.

A component has a path from outside, as in "Graph.Edges". Outside of components the path is "".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .names import Name, RuleFileNames


class Scopes:
    """The scopes of the names in some files."""

    def __init__(self, files: Iterable[RuleFileNames]) -> None:
        self._bases: dict[str, Sequence[str]] = {}
        self._instances: dict[tuple[str, str], str] = {}
        self._declared: set[tuple[str, str, str]] = set()
        self._chains: dict[str, tuple[str, ...]] = {}
        for names in files:
            self._bases.update(names.bases)
            self._instances.update(names.instances)
            self._declared.update((n.within, n.kind, n.text) for n in names.in_order if n.declares)

    def home(self, name: Name) -> str | None:
        """The component that declares a name; None where nothing does."""
        scopes = self.visible(name.within, name.path)
        return next((scope for scope in scopes if (scope, name.kind, name.text) in self._declared), None)

    def same(self, one: Name, other: Name) -> bool:
        """Whether two names, of one kind and text, mean the same."""
        home = self.home(one)
        return home == self.home(other) and (home is not None or one.path == other.path)

    def chain(self, within: str) -> tuple[str, ...]:
        """The components that are searched for a name in one of them: itself, its bases, and then the
        component around it."""
        if within not in self._chains:
            own = self._with_bases(within)
            around = self.chain(within.rpartition(".")[0]) if within else ()
            self._chains[within] = tuple(dict.fromkeys((*own, *around)))
        return self._chains[within]

    def _with_bases(self, component: str) -> tuple[str, ...]:
        components = dict.fromkeys([component])
        waiting = [component]
        while waiting:
            derived = waiting.pop(0)
            for name in self._bases.get(derived, ()):
                base = self._component(derived.rpartition(".")[0], name)
                if base is not None and base not in components:
                    components[base] = None
                    waiting.append(base)
        return tuple(components)

    def _component(self, scope: str, name: str) -> str | None:
        """The component that a name means in a scope."""
        for where in self.chain(scope):
            if (where, "component", name) in self._declared:
                return f"{where}.{name}" if where else name
        return None

    def visible(self, within: str, path: Sequence[str] = ()) -> Sequence[str]:
        """The components whose names may stand in one of them, behind the instances in ``path``."""
        scopes: Sequence[str] = self.chain(within)
        for instance in path:
            where = next((scope for scope in scopes if (scope, instance) in self._instances), None)
            component = None if where is None else self._component(where, self._instances[where, instance])
            scopes = () if component is None else self._with_bases(component)
        return scopes
