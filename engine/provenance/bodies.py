"""The solutions of rule bodies over the tuples of a store, one at a time, on demand.

Computations, tests and negations come as soon as possible. Of atoms, the one with the fewest tuples comes
next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from ..language.syntax import Atom, Literal, Term
from .extents import Extent, Hits, StoredExtents
from .matching import Bindings, Matcher, Row, Rules

Key = tuple[str, Row]
Home = tuple[str, ...] | None
Held = tuple[tuple[int, Key], ...]  # the tuples of atoms, with the number of each atom in its body
Below = Callable[[str, Hits, int], Iterable[Row]]


class Next(NamedTuple):
    """A literal of a body that may come next, and the remaining ones.

    For an atom: its tuples, the ``columns`` with known values, the terms of these, the variables that it
    binds, and its other terms.
    """

    at: int
    literal: Literal
    rest: RemainingBody
    extent: Extent | None = None
    columns: tuple[int, ...] = ()
    values: Callable[[Bindings], Any] = tuple
    free: tuple[tuple[int, str], ...] = ()
    others: tuple[tuple[int, Term], ...] = ()


class RemainingBody:
    """The remaining literals of a body at some point, where the known variables are always the same.

    ``home``: if not None, tuples are looked up by height, in these relations together with replaced ones.
    """

    def __init__(self, body: tuple[Literal, ...], literals: tuple[int, ...], home: Home) -> None:
        self.body, self.literals, self.home = body, literals, home
        self.nexts: tuple[Next, ...] = ()


class BodySolver:
    """Solves the bodies of ``rules``; ``below`` has those tuples of an atom that are below a height."""

    def __init__(self, rules: Rules, extents: StoredExtents, below: Below) -> None:
        self._rules, self._extents, self._below = rules, extents, below
        self._matcher = Matcher(rules, extents, extents)
        self._whole: dict[tuple[int, frozenset[str], Home], RemainingBody] = {}

    def forget(self) -> None:
        """See anew how bodies are solved: tuples are in another order now."""
        self._whole.clear()

    def solutions(
        self,
        body: tuple[Literal, ...],
        bindings: Bindings,
        height: int | None = None,
        home: tuple[str, ...] = (),
    ) -> Iterator[tuple[Bindings, Held]]:
        """The solutions of a body, with the tuples of its atoms: below a height, if one is given; then those
        of the relations ``home`` also where others have replaced them."""
        left = self.whole(body, bindings, None if height is None else home)
        return self._solutions(left, bindings, (), height)

    def whole(self, body: tuple[Literal, ...], bindings: Bindings, home: Home = None) -> RemainingBody:
        """All of a body, where these variables are known."""
        key = (id(body), frozenset(bindings), home)
        if key not in self._whole:
            self._whole[key] = RemainingBody(body, tuple(range(len(body))), home)
        return self._whole[key]

    def _solutions(
        self, left: RemainingBody, bindings: Bindings, held: Held, height: int | None
    ) -> Iterator[tuple[Bindings, Held]]:
        if not left.literals:
            if self._matcher.agrees(bindings):
                yield bindings, held
            return
        step, hits = self.next(left, bindings)
        literal = step.literal
        if hits is None or not isinstance(literal, Atom):
            for more in self._matcher.literal(literal, bindings):
                yield from self._solutions(step.rest, more, held, height)
            return
        rows = hits.tuples() if height is None else self._below(literal.name, hits, height)
        for row in rows:
            extended: Bindings | None = dict(bindings)
            for i, name in step.free:
                if extended is not None and extended.setdefault(name, row[i]) != row[i]:
                    extended = None
            for i, term in step.others:
                extended = extended if extended is None else self._matcher.unified(term, row[i], extended)
            if extended is not None:
                yield from self._solutions(
                    step.rest, extended, (*held, (step.at, (literal.name, row))), height
                )

    def next(self, left: RemainingBody, bindings: Bindings) -> tuple[Next, Hits | None]:
        """The literal of a body that comes next; of an atom the tuples that have its known values."""
        if not left.nexts:
            left.nexts = tuple(self._candidates(left, set(bindings)))
        best, least = left.nexts[0], None
        for step in left.nexts:
            if step.extent is not None:
                hits = step.extent.search(step.columns, step.values(bindings))
                if least is None or len(hits.rows) < len(least.rows):
                    best, least = step, hits
        return best, least

    def _candidates(self, left: RemainingBody, bound: set[str]) -> Iterator[Next]:
        """The literals that may come next: a single one, or atoms."""
        body, literals = left.body, left.literals
        test = next((i for i in literals if self._rules.tests(body[i], bound)), None)
        ready = [i for i in literals if self._rules.ready(body[i], bound)] if test is None else [test]
        for i in [i for i in ready if isinstance(body[i], Atom)] or ready[:1]:
            literal = body[i]
            rest = RemainingBody(body, tuple(other for other in literals if other != i), left.home)
            yield self._atom(i, literal, rest, bound) if isinstance(literal, Atom) else Next(i, literal, rest)

    def _atom(self, at: int, atom: Atom, rest: RemainingBody, bound: set[str]) -> Next:
        shape = self._rules.shape(atom)
        given = {i: name for i, name in shape.variables if name in bound}
        free = tuple((i, name) for i, name in shape.variables if name not in bound)
        columns = tuple(sorted((*shape.constants, *given)))
        if not shape.constants and columns:
            values: Callable[[Bindings], Any] = itemgetter(*map(given.__getitem__, columns))
        else:
            values = _reader([(given.get(i), shape.constants.get(i)) for i in columns])
        home = rest.home
        extent = self._extents.extent(atom.name, home is not None, home is not None and atom.name in home)
        return Next(at, atom, rest, extent, columns, values, free, shape.others)


def _reader(parts: list[tuple[str | None, Any]]) -> Callable[[Bindings], Any]:
    """As ``itemgetter``, for names and constants."""

    def read(bindings: Bindings) -> Any:
        values = tuple(constant if name is None else bindings[name] for name, constant in parts)
        return values[0] if len(values) == 1 else values

    return read
