"""Proofs that the core finds, as arrays: no Python object is made of a step that nobody looks at.

Where all clauses of a relation have atoms alone, and the heights of its tuples are known, the core finds what
a tuple follows from. Of all others the search says it, step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...collector import no_collections
from ..evaluate.store import Store
from ..language.syntax import Atom, Clause, Constant, Variable, Wildcard
from ..plan.plan import Source
from .bodies import Key
from .extents import Extent
from .matching import Bindings, Row, Rules
from .proof import Proof, shown

_OPEN, _ASKED = -2, -3
_MANY = 100_000  # steps after which signals are looked at

Term = tuple[int | None, int | None]  # a variable, or a word; neither: any value will do
Numbers = np.ndarray[Any, np.dtype[np.int64]]
CoreClause = tuple[int, list[Term], list[tuple[int, list[Term]]], int, bool]


class Step(Protocol):
    """What a tuple follows from, where the core does not see it."""

    @property
    def source(self) -> Source | None: ...
    @property
    def premises(self) -> tuple[Key, ...]: ...
    @property
    def counted(self) -> tuple[Key, ...]: ...
    @property
    def bindings(self) -> Bindings | None: ...
    @property
    def lost(self) -> bool: ...


class Table(NamedTuple):
    """A relation and its tuples.

    ``clauses`` are those that give them, each with whether it takes more than facts; ``offset`` is what is to
    be added to the number of a round for the height, None where that is not known. Without clauses all are
    facts.
    """

    name: str
    extent: Extent
    offset: int | None = None
    clauses: Sequence[tuple[Source, Clause, bool]] | None = None


class Trace:
    """Finds proofs over ``tables``; ``ask`` says what tuples follow from that the core cannot tell."""

    def __init__(
        self, store: Store, tables: Sequence[Table], rules: Rules, ask: Callable[[Key], Step]
    ) -> None:
        self._tables, self._ask = tables, ask
        self._numbers = {table.name: number for number, table in enumerate(tables)}
        self._rules = rules
        self._clauses: list[tuple[Source, Clause]] = []
        self._core = store.trace([self._table(table) for table in tables])

    def _table(self, table: Table) -> Any:
        extent, derived = table.extent, None
        if table.clauses is not None and self._is_known(table):
            clauses = [self._clause(*each) for each in table.clauses]
            if None not in clauses:
                derived = (np.array(extent.starts, np.int64), table.offset, clauses)
        return extent.columns, extent.count, table.clauses is None, derived

    def _clause(self, source: Source, clause: Clause, higher: bool) -> CoreClause | None:
        """A clause as the core takes it; None where there is more to it than atoms."""
        names: dict[str, int] = {}
        atoms: list[tuple[int, list[Term]]] = []
        for literal in (clause.head, *clause.body):
            number = self._numbers.get(literal.name) if isinstance(literal, Atom) else None
            if number is None or not isinstance(literal, Atom) or not self._is_known(self._tables[number]):
                return None
            terms: list[Term] = []
            for column, term in enumerate(self._rules.args(literal)):
                if isinstance(term, Variable):
                    terms.append((names.setdefault(term.name, len(names)), None))
                elif isinstance(term, Constant):
                    word = self._tables[number].extent.word(column, term.value)
                    if word is None:
                        return None
                    terms.append((None, word))
                elif isinstance(term, Wildcard):
                    terms.append((None, None))
                else:
                    return None
            atoms.append((number, terms))
        self._clauses.append((source, clause))
        return len(self._clauses) - 1, atoms[0][1], atoms[1:], len(names), higher

    def _is_known(self, table: Table) -> bool:
        """Whether the core can tell which tuples of a relation are below a height, and which are equal."""
        return table.extent.is_exact and (table.clauses is None or table.offset is not None)

    def proof(self, relation: str, row: Row, depth: int | None) -> Proof | None:
        """The proof of a tuple; None where tuples are in it that are gone, or the core finds no proofs."""
        if self._core is None:
            return None
        start = self._tables[self._numbers[relation]].extent.number(row)
        if start is None:
            return None
        self._core.start(self._numbers[relation], start)
        asked: dict[int, Step] = {}
        while not self._core.is_done():
            number = self._core.go(depth, _MANY)
            if number is None:
                continue
            table, tuple_ = self._core.tuple(number)
            step = asked[number] = self._ask(
                (self._tables[table].name, self._tables[table].extent.row(tuple_))
            )
            found = [self._number(*key) for key in step.premises + step.counted]
            if None in found:
                return None
            self._core.answer(found)
        return Steps(self._tables, self._clauses, self._rules, self._core.steps(), asked).goal()

    def _number(self, relation: str, row: Row) -> tuple[int, int] | None:
        table = self._numbers.get(relation)
        number = None if table is None else self._tables[table].extent.number(row)
        return None if table is None or number is None else (table, number)


class Steps:
    """The steps of a proof, by number; ``asked`` are those that the core did not find."""

    def __init__(
        self,
        tables: Sequence[Table],
        clauses: Sequence[tuple[Source, Clause]],
        rules: Rules,
        found: Sequence[Numbers],
        asked: Mapping[int, Step],
    ) -> None:
        self._tables, self.clauses, self.rules, self._asked = tables, clauses, rules, asked
        self._relations, self._rows, self._how, self._ends, self._premises = found

    def goal(self) -> Proof:
        """The proof: other steps are made of the arrays once one is asked for."""
        (goal,) = self._made(1)
        return goal

    @no_collections()
    def complete(self, goal: TracedProof) -> None:
        """Make the steps below the goal."""
        proofs = [goal, *self._made(len(self._how))[1:]]
        premises, first = self._premises.tolist(), 0
        for number, (proof, end) in enumerate(zip(proofs, self._ends.tolist(), strict=True)):
            below = tuple([proofs[other] for other in premises[first:end]])
            several = len(self._asked[number].premises) if number in self._asked else len(below)
            proof.complete(below[:several], below[several:])
            first = end

    def _made(self, count: int) -> list[TracedProof]:
        """The first steps, without what is below them."""
        sources = [source for source, _ in self.clauses]
        names = [table.name for table in self._tables]
        rows = [table.extent.row for table in self._tables]
        found = []
        numbers = (self._relations[:count], self._rows[:count], self._how[:count])
        for number, (relation, row, how) in enumerate(zip(*(x.tolist() for x in numbers), strict=True)):
            step = self._asked.get(number)
            source = sources[how] if how >= 0 else step.source if step else None
            open_ = how == _OPEN or (step is not None and step.lost)
            bindings = step.bindings if step else None
            found.append(
                TracedProof(names[relation], rows[relation](row), source, open_, self, how, bindings)
            )
        return found


class TracedProof(Proof):
    """A step of a proof that was found as arrays."""

    _all: Steps
    _how: int

    def __init__(
        self,
        relation: str,
        row: Row,
        source: Source | None,
        open_: bool,
        steps: Steps,
        how: int,
        bindings: Bindings | None,
    ) -> None:
        # As a frozen class has it.
        own = self.__dict__
        own["relation"], own["row"], own["source"], own["open"] = relation, row, source, open_
        own["_all"], own["_how"] = steps, how
        if how < 0:
            own["bindings"] = shown(bindings) if bindings else ()

    def complete(self, below: tuple[Proof, ...], counted: tuple[Proof, ...]) -> None:
        """Take what is below: a proof for each atom, and what is counted."""
        own = self.__dict__
        own["_below"] = below
        # Several atoms may be about one tuple.
        own["premises"] = tuple(dict.fromkeys(below)) if len(below) > 1 else below
        own["counted"] = counted

    @cached_property
    def premises(self) -> tuple[Proof, ...]:
        self._all.complete(self)
        found: tuple[Proof, ...] = self.__dict__["premises"]
        return found

    @cached_property
    def counted(self) -> tuple[Proof, ...]:
        self._all.complete(self)
        found: tuple[Proof, ...] = self.__dict__["counted"]
        return found

    @cached_property
    def bindings(self) -> tuple[tuple[str, Any], ...]:
        found: Bindings = {}
        rules, clause = self._all.rules, self._all.clauses[self._how][1]
        below = self.premises and self.__dict__["_below"]
        for atom, proof in zip((clause.head, *clause.body), (self, *below), strict=True):
            assert isinstance(atom, Atom)
            found.update((name, proof.row[column]) for column, name in rules.shape(atom).variables)
        return shown(found)
