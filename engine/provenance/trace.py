"""Proofs that the core finds, as arrays: no Python object is made of a step that nobody looks at.

Where the clauses of a relation have only atoms, denied ones and comparisons, without aggregates and ranges,
and the heights of its tuples are known, the core finds what a tuple follows from. Of others the search says
it, step by step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...collector import no_collections
from ..analysis.scopes import holds_generator, variables
from ..analysis.types import Types, plan_type
from ..evaluate.functors import sort_key
from ..evaluate.store import Store
from ..language.syntax import (
    Atom,
    Call,
    Clause,
    Comparison,
    Constant,
    Counter,
    Negation,
    Record,
    Variable,
    Wildcard,
)
from ..language.syntax import Term as Syntax
from ..language.walk import terms
from ..plan.plan import Source
from ..plan.planner import Expressions
from .bodies import Key
from .extents import Extent
from .matching import INTEGERS, Bindings, Matcher, Row
from .proof import Proof, shown

_OPEN, _ASKED = -2, -3
_MANY = 100_000  # steps after which signals are looked at

# An expression of a plan, over the variables of a clause by their numbers; or ("any",), or a record of such.
Term = tuple[object, ...]
CoreAtom = tuple[int, list[Term]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


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
    """A relation and its tuples, and whether these are all that it has.

    ``clauses`` are those that give them, each with whether it takes more than facts; ``offset`` is what is to
    be added to the number of a round for the height, None where that is not known. Without clauses all are
    facts. ``facts`` are those of an equivalence.
    """

    name: str
    extent: Extent
    whole: bool = True
    offset: int | None = None
    clauses: Sequence[tuple[Source, Clause, bool]] | None = None
    facts: Collection[Row] | None = None


class CoreClause(NamedTuple):
    """A clause as the core takes it. ``tests`` are comparisons: operators, types and sides. Atoms have
    patterns: what is computed in them is a variable, and computed by an equation."""

    number: int
    head: list[Term]
    body: list[CoreAtom]
    variables: int
    higher: bool
    tests: list[tuple[str, str, Term, Term]]
    denied: list[CoreAtom]


class _BeyondError(Exception):
    """There is something in a clause that the core does not see."""


class Trace:
    """Finds proofs over ``tables``; ``ask`` says what tuples follow from that the core cannot tell."""

    def __init__(
        self,
        store: Store,
        tables: Sequence[Table],
        matcher: Matcher,
        types: Types,
        ask: Callable[[Key], Step],
    ) -> None:
        self._tables, self._matcher, self._ask, self._types = tables, matcher, ask, types
        self._numbers = {table.name: number for number, table in enumerate(tables)}
        self._clauses: list[tuple[Source, Clause]] = []
        self._core = store.trace([self._table(table) for table in tables])

    def _table(self, table: Table) -> Any:
        extent, derived = table.extent, None
        if table.clauses is not None and _is_known(table):
            known = len(self._clauses)
            try:
                clauses = [self._clause(*each)._asdict() for each in table.clauses]
                starts = np.array(extent.starts, np.int64)
                derived = (starts, table.offset, json.dumps(clauses), self._equivalent(table))
            except _BeyondError:
                del self._clauses[known:]
        return extent.columns, extent.count, table.clauses is None, derived

    def _equivalent(self, table: Table) -> list[int] | None:
        """The numbers of the facts of an equivalence, in their order."""
        if table.facts is None:
            return None
        numbers = [table.extent.number(row) for row in sorted(table.facts, key=sort_key)]
        return [number for number in numbers if number is not None]

    def _clause(self, source: Source, clause: Clause, higher: bool) -> CoreClause:
        """A clause as the core takes it."""
        terms = _Terms(clause, self._matcher.rules.kinds(clause), self._types)
        _, head = self._atom(clause.head, terms)
        body: list[CoreAtom] = []
        denied: list[CoreAtom] = []
        for literal in clause.body:
            if isinstance(literal, Atom):
                body.append(self._atom(literal, terms))
                if not _is_known(self._tables[body[-1][0]]):
                    raise _BeyondError
            elif isinstance(literal, Negation):
                denied.append(self._atom(literal.atom, terms))
                if not self._tables[denied[-1][0]].whole:
                    raise _BeyondError
            elif isinstance(literal, Comparison):
                terms.comparison(literal)
            elif not literal.value:
                raise _BeyondError
        self._clauses.append((source, clause))
        number = len(self._clauses) - 1
        return CoreClause(number, head, body, terms.count, higher, terms.tests, denied)

    def _atom(self, atom: Atom, terms: _Terms) -> CoreAtom:
        number = self._numbers.get(atom.name)
        if number is None:
            raise _BeyondError
        kinds = [self._types.kinds[column.type_name] for column in self._tables[number].extent.declared]
        args = self._matcher.rules.args(atom)
        return number, [terms.pattern(term, kind) for term, kind in zip(args, kinds, strict=True)]

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
        return Steps(self._tables, self._clauses, self._matcher, self._core.steps(), asked).goal()

    def _number(self, relation: str, row: Row) -> tuple[int, int] | None:
        table = self._numbers.get(relation)
        number = None if table is None else self._tables[table].extent.number(row)
        return None if table is None or number is None else (table, number)


def _is_known(table: Table) -> bool:
    """Whether the core can tell which tuples of a relation are below a height."""
    return table.clauses is None or table.offset is not None


class _Terms:
    """The terms of a clause for the core, and ``tests`` of them."""

    def __init__(self, clause: Clause, kinds: Mapping[str, str], types: Types) -> None:
        parts = [clause.head, *(x.atom if isinstance(x, Negation) else x for x in clause.body)]
        names = sorted(set().union(*(variables(term) for part in parts for term in terms(part))))
        self._expressions = Expressions(clause, kinds, types, {name: i for i, name in enumerate(names)})
        self._types = types
        self.count = len(names)
        self.tests: list[tuple[str, str, Term, Term]] = []

    def pattern(self, term: Syntax, kind: str) -> Term:
        """A term that a value may be matched with."""
        if isinstance(term, Wildcard | Counter):
            return ("any",)
        if isinstance(term, Record):
            fields = self._types.fields[kind]
            return ("record", *(self.pattern(t, k) for t, k in zip(term.args, fields, strict=True)))
        value = self.value(term, kind)
        if value[0] != "call" or _is_shifted(term, kind):
            return value
        new = ("reg", self.count)
        self.count += 1
        self.tests.append(("=", plan_type(kind), new, value))
        return new

    def value(self, term: Syntax, kind: str) -> Term:
        """A term that is computed."""
        if holds_generator(term):
            raise _BeyondError
        return self._expressions.value(term, kind)

    def comparison(self, literal: Comparison) -> None:
        """A test more."""
        kind = self._expressions.compared(literal)
        sides = (literal.left, literal.right)
        if literal.operator == "=":
            left, right = (
                self.pattern(s, kind) if isinstance(s, Record | Wildcard) else self.value(s, kind)
                for s in sides
            )
        else:
            left, right = (self.value(side, kind) for side in sides)
        self.tests.append((literal.operator, plan_type(kind), left, right))


def _is_shifted(term: Syntax, kind: str) -> bool:
    """Whether a term is a variable to which an integer is added."""
    if not isinstance(term, Call) or kind not in INTEGERS:
        return False
    match term.name, term.args:
        case ("+", (Variable(), Constant()) | (Constant(), Variable())) | ("-", (Variable(), Constant())):
            return True
    return False


class Steps:
    """The steps of a proof, by number; ``asked`` are those that the core did not find."""

    def __init__(
        self,
        tables: Sequence[Table],
        clauses: Sequence[tuple[Source, Clause]],
        matcher: Matcher,
        found: Sequence[Numbers],
        asked: Mapping[int, Step],
    ) -> None:
        self._tables, self.clauses, self.matcher, self._asked = tables, clauses, matcher, asked
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
        relations, numbers = self._relations[:count], self._rows[:count]
        rows = [iter(t.extent.rows(numbers[relations == i])) for i, t in enumerate(self._tables)]
        found = []
        pairs = zip(relations.tolist(), self._how[:count].tolist(), strict=True)
        for number, (relation, how) in enumerate(pairs):
            step = self._asked.get(number)
            source = sources[how] if how >= 0 else step.source if step else None
            open_ = how == _OPEN or (step is not None and step.lost)
            bindings = step.bindings if step else None
            found.append(
                TracedProof(names[relation], next(rows[relation]), source, open_, self, how, bindings)
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
        matcher, clause = self._all.matcher, self._all.clauses[self._how][1]
        rules, found = matcher.rules, dict[str, Any]()
        below = self.premises and self.__dict__["_below"]
        atoms = (clause.head, *(literal for literal in clause.body if isinstance(literal, Atom)))
        computed: list[tuple[Syntax, Any]] = []
        for atom, proof in zip(atoms, (self, *below), strict=True):
            shape = rules.shape(atom)
            found.update((name, proof.row[column]) for column, name in shape.variables)
            computed += [(term, proof.row[column]) for column, term in shape.others]
        for term, value in computed:  # of which others may have to be known
            found = matcher.unified(term, value, found) or found
        for literal in rules.ordered(clause):
            if isinstance(literal, Comparison) and literal.operator == "=":
                found = next(matcher.comparison(literal, found), found)
        return shown(found)
