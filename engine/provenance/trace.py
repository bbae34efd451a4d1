"""Proofs from the core, as arrays: Python objects are made only for steps that are read.

The core finds the premises of a tuple if the heights of its relation are known, and no aggregate in its
clauses depends on the order of addition. For other relations the search finds them, step by step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np

from ...collector import no_collections
from ..analysis.inference import kind_of
from ..analysis.projections import counts_bindings
from ..analysis.scopes import holds_generator, variables
from ..analysis.types import Types, plan_type
from ..evaluate.functors import sort_key
from ..evaluate.store import Store
from ..language.syntax import (
    Aggregate,
    Atom,
    Call,
    Clause,
    Comparison,
    Constant,
    Counter,
    Literal,
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

_OPEN = -2

# An expression of a plan, over the variables of a clause by their numbers; or ("any",), or a record of such.
Term = tuple[object, ...]
CoreAtom = tuple[int, list[Term]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


class ProofStep(Protocol):
    """The premises of a tuple, if the core does not find them."""

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


class TracedRelation(NamedTuple):
    """A relation, its tuples, and whether they are complete.

    ``clauses`` derive them, each with whether it needs more than facts. ``offset`` is the number to add to a
    round for the height, None if unknown. Without clauses all tuples are facts. ``facts`` are the facts of an
    equivalence.
    """

    name: str
    extent: Extent
    whole: bool = True
    offset: int | None = None
    clauses: Sequence[tuple[Source, Clause, bool]] | None = None
    facts: Collection[Row] | None = None


class CoreClause(NamedTuple):
    """A clause in the form of the core. ``tests`` are comparisons: operators, types and sides. Atoms have
    patterns; a computed term in them is a variable with an equation. Ranges are variables with their types
    and terms."""

    number: int
    head: list[Term]
    body: list[CoreAtom]
    variables: int
    higher: bool
    tests: list[tuple[str, str, Term, Term]]
    denied: list[CoreAtom]
    aggregates: list[dict[str, Any]]
    ranges: list[tuple[int, str, list[Term]]]


class _BeyondError(Exception):
    """There is something in a clause that the core does not see."""


class Trace:
    """Finds proofs over ``tables``; ``ask`` gives premises that the core cannot find."""

    def __init__(
        self,
        store: Store,
        tables: Sequence[TracedRelation],
        matcher: Matcher,
        types: Types,
        ask: Callable[[Key], ProofStep],
    ) -> None:
        self._tables, self._matcher, self._ask, self._types = tables, matcher, ask, types
        self._numbers = {table.name: number for number, table in enumerate(tables)}
        self._named = {table.name: (number, table) for number, table in enumerate(tables)}
        self._clauses: list[tuple[Source, Clause]] = []
        self._core = store.trace([self._table(table) for table in tables])

    def _table(self, table: TracedRelation) -> Any:
        extent, derived = table.extent, None
        if table.clauses is not None and _is_known(table):
            before = len(self._clauses)
            try:
                clauses = [self._clause(*each)._asdict() for each in table.clauses]
                starts = np.array(extent.starts, np.int64)
                derived = (starts, table.offset, json.dumps(clauses), self._equivalent(table))
            except _BeyondError:
                del self._clauses[before:]
        if table.facts is not None:
            extent.load()  # many pairs are looked for
        tuples = extent.name if extent.stored else extent.columns
        return tuples, extent.count, len(extent.declared), table.clauses is None, derived

    def _equivalent(self, table: TracedRelation) -> list[int] | None:
        """The numbers of the facts of an equivalence, in their order."""
        if table.facts is None:
            return None
        numbers = [table.extent.number(row) for row in sorted(table.facts, key=sort_key)]
        return [number for number in numbers if number is not None]

    def _clause(self, source: Source, clause: Clause, higher: bool) -> CoreClause:
        """A clause as the core takes it."""
        scope = _Scope(self._named, clause, self._matcher.rules.kinds(clause), self._types, clause)
        _, head = scope.atom(clause.head)
        body = scope.body(clause.body)
        self._clauses.append((source, clause))
        return body._replace(number=len(self._clauses) - 1, head=head, higher=higher)

    def proof(self, relation: str, row: Row, depth: int | None) -> Proof | None:
        """The proof of a tuple; None where tuples are in it that are gone, or the core finds no proofs."""
        if self._core is None:
            return None
        start = self._tables[self._numbers[relation]].extent.number(row)
        if start is None:
            return None
        self._core.start(self._numbers[relation], start)
        asked: dict[int, ProofStep] = {}
        while True:
            number = self._core.go(depth)
            if number is None:
                break
            table, tuple_ = self._core.tuple(number)
            step = asked[number] = self._ask(
                (self._tables[table].name, self._tables[table].extent.row(tuple_))
            )
            numbers = [self._number(*key) for key in step.premises + step.counted]
            if None in numbers:
                return None
            self._core.answer(numbers)
        steps, words = self._core.steps(), self._core.words()
        return ProofSteps(self._tables, self._clauses, self._matcher, steps, words, asked).goal()

    def _number(self, relation: str, row: Row) -> tuple[int, int] | None:
        table = self._numbers.get(relation)
        number = None if table is None else self._tables[table].extent.number(row)
        return None if table is None or number is None else (table, number)


def _is_known(table: TracedRelation) -> bool:
    """Whether the core can tell which tuples of a relation are below a height."""
    return table.clauses is None or table.offset is not None


class _Scope:
    """The contents of a clause, or of an aggregate in it, for the core. ``tables`` are numbered."""

    def __init__(
        self,
        tables: Mapping[str, tuple[int, TracedRelation]],
        clause: Clause,
        kinds: Mapping[str, str],
        types: Types,
        own: Clause | Aggregate,
        around: _Scope | None = None,
    ) -> None:
        self._tables, self._clause, self._kinds, self._types = tables, clause, kinds, types
        self._around = around
        self._top: _Scope = around._top if around else self
        self._count = 0  # of the variables of a clause with those in aggregates
        self._tests: list[tuple[str, str, Term, Term]] = []
        self._aggregates: list[dict[str, Any]] = []
        self._ranges: list[tuple[int, str, list[Term]]] = []
        literals = [x.atom if isinstance(x, Negation) else x for x in own.body]
        parts = [term for literal in literals for term in terms(literal)]
        if isinstance(own, Clause):
            parts += terms(own.head)
            self._names: dict[str, int] = {}
        else:
            parts += () if own.target is None else (own.target,)
            self._names = {name: around._names[name] for name in own.outer} if around else {}
        for name in sorted(set().union(*map(variables, parts))):
            if name not in self._names:
                self._names[name] = self._new()
        self._expressions = Expressions(clause, kinds, types, self._names)

    def _new(self) -> int:
        """The number of a variable more."""
        self._top._count += 1
        return self._top._count - 1

    def atom(self, atom: Atom) -> CoreAtom:
        """An atom."""
        if atom.name not in self._tables:
            raise _BeyondError
        number, table = self._tables[atom.name]
        kinds = [self._types.kinds[column.type_name] for column in table.extent.declared]
        return number, [self._pattern(term, kind) for term, kind in zip(atom.args, kinds, strict=True)]

    def body(self, literals: Iterable[Literal]) -> CoreClause:
        """A body, without its head."""
        body: list[CoreAtom] = []
        denied: list[CoreAtom] = []
        literals = tuple(literals)
        if self._around or any(_is_range(term) for literal in literals for term in terms(literal)):
            self._read_later(literals)
        for literal in literals:
            if isinstance(literal, Atom):
                body.append(self.atom(literal))
                table = self._tables[literal.name][1]
                if not (table.whole if self._around else _is_known(table)):
                    raise _BeyondError
            elif isinstance(literal, Negation):
                denied.append(self.atom(literal.atom))
                if not self._tables[literal.atom.name][1].whole:
                    raise _BeyondError
            elif isinstance(literal, Comparison):
                self._comparison(literal)
            elif not literal.value:
                raise _BeyondError
        others = self._tests, denied, self._aggregates, self._ranges
        return CoreClause(0, [], body, self._top._count, False, *others)

    def _read_later(self, literals: Iterable[Literal]) -> None:
        """Copy the relations that are read for the values of variables, once someone asks for these."""
        atoms = [x.atom if isinstance(x, Negation) else x for x in literals]
        for name in {atom.name for atom in atoms if isinstance(atom, Atom)}:
            if name in self._tables:
                self._tables[name][1].extent.load()

    def _pattern(self, term: Syntax, kind: str) -> Term:
        """A term that a value may be matched with."""
        if isinstance(term, Wildcard | Counter):
            return ("any",)
        if isinstance(term, Record):
            fields = self._types.fields[kind]
            return ("record", *(self._pattern(t, k) for t, k in zip(term.args, fields, strict=True)))
        value = self._value(term, kind)
        if value[0] != "call" or _is_shifted(term, kind):
            return value
        new = ("reg", self._new())
        self._tests.append(("=", plan_type(kind), new, value))
        return new

    def _value(self, term: Syntax, kind: str) -> Term:
        """A term that is computed."""
        if isinstance(term, Aggregate):
            return "reg", self._aggregate(term)
        if _is_range(term):
            new = self._new()
            self._ranges.append((new, plan_type(kind), [self._value(part, kind) for part in term.args]))
            return "reg", new
        if holds_generator(term):
            raise _BeyondError
        return self._expressions.value(term, kind)

    def _comparison(self, literal: Comparison) -> None:
        """A test more."""
        kind = self._expressions.compared(literal)
        sides = (literal.left, literal.right)
        if self._around and any(map(_is_range, sides)) and not any(isinstance(s, Variable) for s in sides):
            raise _BeyondError  # each number would be a solution
        if literal.operator == "=":
            left, right = (
                self._pattern(s, kind) if isinstance(s, Record | Wildcard) else self._value(s, kind)
                for s in sides
            )
        else:
            left, right = (self._value(side, kind) for side in sides)
        self._tests.append((literal.operator, plan_type(kind), left, right))

    def _aggregate(self, term: Aggregate) -> int:
        """The variable that has the value of an aggregate."""
        inside = _Scope(self._tables, self._clause, self._kinds, self._types, term, self)
        kind = (kind_of(term.target, self._kinds, self._types) if term.target else None) or "number"
        if kind == "float" and term.function in ("sum", "mean"):
            raise _BeyondError  # they depend on the order of addition
        target = inside._value(term.target, kind) if term.target else None
        variable = self._new()
        self._aggregates.append(
            {
                "variable": variable,
                "function": term.function,
                "kind": plan_type(kind),
                "target": target,
                "outer": [self._names[name] for name in term.outer],
                "distinct": counts_bindings(term),
                "body": inside.body(term.body)._asdict(),
            }
        )
        return variable


def _is_range(term: Syntax) -> TypeGuard[Call]:
    return isinstance(term, Call) and term.name == "range"


def _is_shifted(term: Syntax, kind: str) -> bool:
    """Whether a term is a variable plus an integer."""
    if not isinstance(term, Call) or kind not in INTEGERS:
        return False
    match term.name, term.args:
        case ("+", (Variable(), Constant()) | (Constant(), Variable())) | ("-", (Variable(), Constant())):
            return True
    return False


class ProofSteps:
    """The steps of a proof, by number; ``asked`` are the steps that the core did not find."""

    def __init__(
        self,
        tables: Sequence[TracedRelation],
        clauses: Sequence[tuple[Source, Clause]],
        matcher: Matcher,
        steps: Sequence[Numbers],
        words: Sequence[Sequence[Numbers]],
        asked: Mapping[int, ProofStep],
    ) -> None:
        self._tables, self.clauses, self.matcher, self._asked = tables, clauses, matcher, asked
        self._relations, self._how, self._ends, self._premises = steps
        self._words = words  # by relation and column

    def goal(self) -> Proof:
        """The proof: other steps are made of the arrays once one is asked for."""
        (goal,) = self._made(1)
        return goal

    @no_collections()
    def complete(self, goal: TracedProof) -> None:
        """Make the steps below the goal."""
        proofs = [goal, *self._made(len(self._how))[1:]]
        premises, first = self._premises.tolist(), 0
        atoms = [sum(isinstance(literal, Atom) for literal in clause.body) for _, clause in self.clauses]
        pairs = zip(proofs, self._ends.tolist(), self._how.tolist(), strict=True)
        for number, (proof, end, how) in enumerate(pairs):
            below = tuple([proofs[other] for other in premises[first:end]])
            if number in self._asked:
                several = len(self._asked[number].premises)
            else:
                several = atoms[how] if how >= 0 else len(below)
            proof.complete(below[:several], below[several:])
            first = end

    def _made(self, count: int) -> list[TracedProof]:
        """The first steps, without their premises."""
        sources = [source for source, _ in self.clauses]
        names = [table.name for table in self._tables]
        relations, rows = self._relations[:count], list[Iterator[Row]]()
        for i, (table, words) in enumerate(zip(self._tables, self._words, strict=True)):
            several = int(np.count_nonzero(relations == i))
            rows.append(iter(table.extent.rows([column[:several] for column in words], several)))
        proofs = []
        pairs = zip(relations.tolist(), self._how[:count].tolist(), strict=True)
        for number, (relation, how) in enumerate(pairs):
            step = self._asked.get(number)
            source = sources[how] if how >= 0 else step.source if step else None
            open_ = how == _OPEN or (step is not None and step.lost)
            bindings = step.bindings if step else None
            proofs.append(
                TracedProof(names[relation], next(rows[relation]), source, open_, self, how, bindings)
            )
        return proofs


class TracedProof(Proof):
    """A step of a proof that was found as arrays."""

    _all: ProofSteps
    _how: int

    def __init__(
        self,
        relation: str,
        row: Row,
        source: Source | None,
        open_: bool,
        steps: ProofSteps,
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
        """Take the premises: a proof for each atom, and the counted ones."""
        own = self.__dict__
        own["_below"] = below
        # Several atoms may be about one tuple.
        own["premises"] = tuple(dict.fromkeys(below)) if len(below) > 1 else below
        own["counted"] = counted

    @cached_property
    def premises(self) -> tuple[Proof, ...]:
        self._all.complete(self)
        premises: tuple[Proof, ...] = self.__dict__["premises"]
        return premises

    @cached_property
    def counted(self) -> tuple[Proof, ...]:
        self._all.complete(self)
        counted: tuple[Proof, ...] = self.__dict__["counted"]
        return counted

    @cached_property
    def bindings(self) -> tuple[tuple[str, Any], ...]:
        matcher, clause = self._all.matcher, self._all.clauses[self._how][1]
        rules, bindings = matcher.rules, dict[str, Any]()
        below = self.premises and self.__dict__["_below"]
        atoms = (clause.head, *(literal for literal in clause.body if isinstance(literal, Atom)))
        computed: list[tuple[Syntax, Any]] = []
        for atom, proof in zip(atoms, (self, *below), strict=True):
            shape = rules.shape(atom)
            bindings.update((name, proof.row[column]) for column, name in shape.variables)
            computed += [(term, proof.row[column]) for column, term in shape.others]
        for term, value in computed:  # whose other parts may have to be known
            bindings = matcher.unified(term, value, bindings) or bindings
        rest = [literal for literal in rules.ordered(clause) if not isinstance(literal, Atom)]
        if any(_is_range(term) for literal in rest for term in terms(literal)):
            return shown(next(matcher.body(rest, 0, bindings), bindings))
        for literal in rest:
            if isinstance(literal, Comparison) and literal.operator == "=":
                bindings = next(matcher.comparison(literal, bindings), bindings)
        return shown(bindings)
