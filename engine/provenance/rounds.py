"""The heights of tuples by the rounds of an evaluation.

If all rules of a stratum start from tuples of one height, such as facts, the tuples of a round have one
height: one more than those of the previous round. Without recursion the height of a tuple follows from the
heights of its premises.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from ..language.syntax import Atom, Clause
from ..plan.plan import QueryPlan, Source, Stratum

_DEEPEST = 16  # relations that are looked through one below the other

Clauses = Mapping[str, Collection[tuple[Source, Clause]]]


class Rounds:
    """For each relation, how to get the heights of its tuples, if everything was computed ``at_once``.

    ``offsets``: the number to add to the round of a tuple. ``layers``: the number of relations to search, one
    below the other; 0 if there is an offset. For derived relations in neither, rounds do not give the
    heights.
    """

    def __init__(
        self, plan: QueryPlan, clauses: Clauses, facts: Callable[[str], Collection[object]], at_once: bool
    ) -> None:
        self.offsets: dict[str, int] = {}
        self.layers: dict[str, int] = {}
        self._clauses = clauses
        self._levels: dict[str, int | None] = {}  # of relations whose tuples are all of one height
        closed = {relation.name for relation in plan.relations if relation.eqrel}
        strata = [({plan.relations[i].name for i in stratum.relations}, stratum) for stratum in plan.strata]
        self._derived = closed.union(*(names for names, _ in strata))
        noting = {name for name, each in clauses.items() if any(clause.notes for _, clause in each)}
        for together, stratum in strata:
            names = together - noting  # a tuple that notes a round is found in that round, not in the next
            given = any(map(facts, names))
            offset = self._offset(names, given) if at_once and not _chooses(plan, stratum) else None
            if offset is not None:
                self.offsets.update(dict.fromkeys(names, offset))
                self.layers.update(dict.fromkeys(names, 0))
            if not given and not stratum.recursive and not names & closed:
                self._levels.update((name, self._level(name)) for name in names)
            if not stratum.recursive and not names & closed and not names & set(self.offsets):
                self._layer(names)
            self._layer(noting & together)

    def says(self, relation: str) -> bool:
        """Whether the heights of a relation are had from rounds."""
        return relation not in self._derived or relation in self.layers

    def _layer(self, names: Iterable[str]) -> None:
        for name in names:
            below = {
                a for _, clause in self._clauses.get(name, ()) for a in atoms(clause) if a in self._derived
            }
            if all(a in self.layers for a in below):
                layer = 1 + max((self.layers[a] for a in below), default=0)
                if layer <= _DEEPEST:
                    self.layers[name] = layer

    def _level(self, name: str) -> int | None:
        """The height of all tuples of a relation; None where they differ."""
        tops = {self._top(atoms(clause)) for _, clause in self._clauses.get(name, ())}
        top = tops.pop() if len(tops) == 1 else None
        return None if top is None else top + 1

    def _offset(self, names: Collection[str], given: bool) -> int | None:
        """The height of the tuples from which all rules of a stratum start: one below the height of facts if
        it starts from its own facts. None if the heights differ, or if rules read other tuples on the way."""
        start: set[int | None] = {-1} if given else set()
        way: set[int | None] = {0}
        for name in names:
            for _, clause in self._clauses.get(name, ()):
                used = atoms(clause)
                others = [atom for atom in used if atom not in names]
                (start if len(others) == len(used) else way).add(self._top(others))
        if len(start) > 1 or None in start or None in way:
            return None
        first = next(iter(start), 0)
        assert first is not None
        return first if all(top is not None and top <= first + 1 for top in way) else None

    def _top(self, names: Iterable[str]) -> int | None:
        """The height of the highest of some relations' tuples; None where it is not the same for all."""
        levels = [self._levels.get(atom) if atom in self._derived else 0 for atom in names]
        equal = [level for level in levels if level is not None]
        return max(equal, default=0) if len(equal) == len(levels) else None


def atoms(clause: Clause) -> list[str]:
    """The relations of the atoms of a clause's body."""
    return [literal.name for literal in clause.body if isinstance(literal, Atom)]


def _chooses(plan: QueryPlan, stratum: Stratum) -> bool:
    """Whether rules of a stratum give more than there is in the end."""
    limited = any(plan.relations[i].most is not None for i in stratum.relations)
    return bool(stratum.candidates or stratum.superfluous) or limited


def chosen(plan: QueryPlan) -> set[str]:
    """The relations whose rules derive more tuples than remain, because some were chosen."""
    strata = (stratum for stratum in plan.strata if _chooses(plan, stratum))
    return {plan.relations[i].name for stratum in strata for i in stratum.relations}


def replaced_in(plan: QueryPlan) -> dict[str, tuple[str, ...]]:
    """The relations of strata in which tuples replace others, each with the relations of its stratum."""
    strata = [tuple(plan.relations[i].name for i in s.relations) for s in plan.strata if s.superfluous]
    return {name: names for names in strata for name in names}
