"""Rules as written, matched against tuples: the smallest thing that says whether a rule applies.

Nothing here comes from the planner or the evaluators; only the intrinsic functors are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..analysis.checks import grounded_by
from ..analysis.projections import counts_bindings
from ..analysis.scopes import holds_wildcard, resolve, variables
from ..evaluate.functors import TESTS, Ordinal, added, call, ranged, sort_value, wrap
from ..evaluate.ordinals import hashed
from ..language.diagnostics import EngineError, Reporter
from ..language.parser import parse
from ..language.sources import Sources
from ..language.syntax import (
    Aggregate,
    Atom,
    Call,
    Cast,
    Clause,
    Comparison,
    Constant,
    Counter,
    Literal,
    Module,
    Negation,
    Nil,
    Record,
    Term,
    Truth,
    Variable,
    Wildcard,
)
from ..language.walk import terms
from ..plan.plan import Source
from ..transform.numbers import uncounted

if TYPE_CHECKING:
    from ..plan.compiler import CheckedClauses

Row = tuple[Any, ...]
Bindings = dict[str, Any]
_KINDS = {int: "number", float: "float", str: "symbol"}
INTEGERS = ("number", "unsigned")
_LATER = "@later"  # terms with unknown variables, each with its required value
_FEW = 8  # tuples that are looked through one by one


class Searchable(Protocol):
    """The tuples of relations by name."""

    def matching(self, relation: str, given: dict[int, Any]) -> Iterable[Row]:
        """A superset of the tuples that have the ``given`` values, by column."""
        ...


class Extents:
    """The tuples of relations by name, found by some of their columns. There may come more behind others."""

    def __init__(self, rows: Callable[[str], Collection[Row]]) -> None:
        self._rows = rows
        self._found: dict[tuple[str, tuple[int, ...]], tuple[int, dict[Row, list[Row]]]] = {}

    def matching(self, relation: str, given: dict[int, Any]) -> Iterable[Row]:
        """A superset of the tuples that have the ``given`` values, by column."""
        rows = self._rows(relation)
        if not given or len(rows) <= _FEW:
            return rows
        columns = tuple(given)
        seen, index = self._found.get((relation, columns), (0, {}))
        for row in islice(rows, seen, None) if seen < len(rows) else ():
            index.setdefault(tuple(row[c] for c in columns), []).append(row)
        self._found[relation, columns] = (len(rows), index)
        return index.get(tuple(given.values()), ())


class Shape(NamedTuple):
    """The arguments of an atom by column: constants, variables, and others; computed ones come last."""

    constants: dict[int, Any]
    variables: tuple[tuple[int, str], ...]
    others: tuple[tuple[int, Term], ...]


class Rules:
    """The clauses of rules; atoms of the relations in ``keyed`` lose their first argument.

    Without ``written`` each rule is read from its text, which is of a program without components, inlined
    relations and algebraic data types; an integer is taken for a ``number``. ``ordinal`` gives the numbers of
    symbols.
    """

    def __init__(
        self, keyed: Collection[str] = (), written: CheckedClauses | None = None, ordinal: Ordinal = hashed
    ) -> None:
        self._keyed, self.ordinal = keyed, ordinal
        self._clauses: dict[Source | str, list[Clause]] = {}
        self._written = written is not None
        self.types: Mapping[tuple[int, str], str] = written.types if written else {}
        self._kinds: dict[int, Mapping[str, str]] = {}  # by the clause's identity
        for (source, clause), kinds in zip(written.clauses, written.kinds, strict=True) if written else ():
            self._clauses.setdefault(source, []).append(clause)
            self._kinds[id(clause)] = kinds
        self._ordered: dict[int, tuple[Literal, ...]] = {}
        self._shapes: dict[int, tuple[Atom, Shape]] = {}  # by identity, which the atom keeps

    def clauses(self, source: Source) -> list[Clause]:
        """One clause per head and alternative of a rule."""
        if self._written:
            return self._clauses.get(source, [])
        if source.text not in self._clauses:
            sources, module = Sources(), Module()
            reporter = Reporter(sources)
            start = sources.add(source.file, source.text)
            parse(source.text, start, module, reporter, lambda *_: None)
            reporter.finish()
            self._clauses[source.text] = [uncounted(resolve(clause)) for clause in module.clauses]
        return self._clauses[source.text]

    def kinds(self, clause: Clause) -> Mapping[str, str]:
        """The kinds of the variables of a written clause, as far as they are known."""
        return self._kinds.get(id(clause), {})

    def explains(
        self, source: Source, relation: str, row: Row, premises: Iterable[tuple[str, Row]], holds: Searchable
    ) -> Iterator[Bindings]:
        """The ways in which a rule derives a tuple, with premises for the atoms of its body.

        ``holds`` has the tuples that negations and aggregates read.
        """
        given: dict[str, list[Row]] = {}
        for name, held in premises:
            given.setdefault(name, []).append(held)
        atoms = Extents(lambda name: given.get(name, ()))
        for clause in self.clauses(source):
            if clause.head.name != relation:
                continue
            matcher = Matcher(self, atoms, holds)
            head = list(zip(self.args(clause.head), row, strict=True))
            start = self.key(clause)
            start.update({term.name: value for term, value in head if isinstance(term, Variable)})
            for bindings in matcher.body(self.ordered(clause), 0, start):
                if all(matcher.equal(term, value, bindings) for term, value in head):
                    yield bindings

    def conclusions(self, clause: Clause, holds: Searchable) -> Iterator[Row]:
        """The tuples that a clause gives."""
        matcher = Matcher(self, holds, holds)
        for bindings in matcher.body(self.ordered(clause), 0, self.key(clause)):
            yield tuple(matcher.value(term, bindings) for term in self.args(clause.head))

    def shape(self, atom: Atom) -> Shape:
        """The arguments of an atom, sorted out once."""
        if id(atom) not in self._shapes:
            args = list(enumerate(self.args(atom)))
            others = [(i, t) for i, t in args if not isinstance(t, Constant | Variable | Wildcard | Counter)]
            shape = Shape(
                {i: term.value for i, term in args if isinstance(term, Constant)},
                tuple((i, term.name) for i, term in args if isinstance(term, Variable)),
                tuple(sorted(others, key=lambda other: not is_pattern(other[1]))),
            )
            self._shapes[id(atom)] = atom, shape
        return self._shapes[id(atom)][1]

    def args(self, atom: Atom) -> tuple[Term, ...]:
        """The arguments of an atom without its key."""
        return atom.args[1:] if atom.name in self._keyed else atom.args

    def key(self, clause: Clause) -> Bindings:
        """The variable of the key, if any; its value is of no matter."""
        first = clause.head.args[:1] if clause.head.name in self._keyed else ()
        return {term.name: None for term in first if isinstance(term, Variable)}

    def ordered(self, clause: Clause) -> tuple[Literal, ...]:
        """The body in an order in which computations, tests and negations have their variables."""
        if id(clause) not in self._ordered:
            self._ordered[id(clause)] = self._in_order(clause.body, set(self.key(clause)))
        return self._ordered[id(clause)]

    def _in_order(self, body: Sequence[Literal], bound: set[str]) -> tuple[Literal, ...]:
        bound, waiting = set(bound), list(body)
        ordered: list[Literal] = []
        while waiting:
            literal = next((x for x in waiting if self.tests(x, bound)), None)
            literal = literal or next(x for x in waiting if self.ready(x, bound))
            waiting.remove(literal)
            ordered.append(literal)
            bound = grounded_by([literal], bound)
        return tuple(ordered)

    def tests(self, literal: Literal, bound: set[str]) -> bool:
        """Whether a literal brings no variable but by an equation."""
        if isinstance(literal, Comparison) and literal.operator == "=":
            return self.ready(literal, bound)
        inside = literal.atom if isinstance(literal, Negation) else literal
        return all(variables(term) <= bound for term in self.terms(inside))

    def ready(self, literal: Literal, bound: set[str]) -> bool:
        """Whether a literal can be matched: all that it computes is known by then."""
        if isinstance(literal, Comparison) and literal.operator == "=":
            left, right = literal.left, literal.right
            return (
                (is_pattern(left) and _has_value(right, bound))
                or (is_pattern(right) and _has_value(left, bound))
                or (_has_value(left, bound) and _has_value(right, bound))
            )
        return isinstance(literal, Atom)

    def terms(self, literal: Literal) -> tuple[Term, ...]:
        if isinstance(literal, Negation):
            return self.args(literal.atom)
        return self.args(literal) if isinstance(literal, Atom) else terms(literal)


class Matcher(NamedTuple):
    """``atoms`` has the tuples for atoms, ``holds`` the tuples for negations and aggregates."""

    rules: Rules
    atoms: Searchable
    holds: Searchable

    def body(self, literals: Sequence[Literal], at: int, bindings: Bindings) -> Iterator[Bindings]:
        if at == len(literals):
            if self.agrees(bindings):
                yield bindings
            return
        for more in self.literal(literals[at], bindings):
            yield from self.body(literals, at + 1, more)

    def literal(self, literal: Literal, bindings: Bindings) -> Iterator[Bindings]:
        if isinstance(literal, Atom):
            yield from self.atom(literal, self.atoms, bindings)
        elif isinstance(literal, Negation):
            if not any(True for _ in self.atom(literal.atom, self.holds, bindings)):
                yield bindings
        elif isinstance(literal, Truth):
            if literal.value:
                yield bindings
        else:
            yield from self.comparison(literal, bindings)

    def atom(self, atom: Atom, extents: Searchable, bindings: Bindings) -> Iterator[Bindings]:
        return (extended for _, extended in self.held(atom, extents, bindings))

    def held(self, atom: Atom, extents: Searchable, bindings: Bindings) -> Iterator[tuple[Row, Bindings]]:
        """The tuples that match an atom, each with the bindings that it gives."""
        shape = self.rules.shape(atom)
        given = self.known(atom, bindings)
        free = [(i, name) for i, name in shape.variables if name not in bindings]
        for row in extents.matching(atom.name, given):
            extended: Bindings | None = dict(bindings)
            for i, value in given.items():
                if row[i] != value:
                    extended = None
            for i, name in free:
                if extended is not None and extended.setdefault(name, row[i]) != row[i]:
                    extended = None
            for i, term in shape.others:
                extended = extended if extended is None else self.unified(term, row[i], extended)
            if extended is not None:
                yield row, extended

    def known(self, atom: Atom, bindings: Bindings) -> dict[int, Any]:
        """The values that constants and variables give to the columns of an atom."""
        shape = self.rules.shape(atom)
        given = {i: bindings[name] for i, name in shape.variables if name in bindings}
        return {**shape.constants, **given} if shape.constants else given

    def comparison(self, literal: Comparison, bindings: Bindings) -> Iterator[Bindings]:
        left, right = literal.left, literal.right
        if literal.operator == "=":
            pattern, term = (left, right) if _has_value(right, bindings.keys()) else (right, left)
            for value in self.values(term, bindings):
                extended = self.unified(pattern, value, dict(bindings))
                if extended is not None:
                    yield extended
            return
        negated = literal.operator in ("!match", "!contains")
        operator = literal.operator[1:] if negated else literal.operator
        for a in self.values(left, bindings):
            for b in self.values(right, bindings):
                if TESTS[operator](a, b) != negated:
                    yield bindings
                    return

    def unified(self, term: Term, value: Any, bindings: Bindings) -> Bindings | None:
        """``bindings`` extended so that ``term`` equals ``value``; None if that is impossible. Terms with
        unknown variables are left to ``agrees``."""
        if isinstance(term, Wildcard | Counter):
            return bindings
        if isinstance(term, Variable) and term.name not in bindings:
            bindings[term.name] = value
            return bindings
        if isinstance(term, Record):
            if not isinstance(value, tuple) or len(value) != len(term.args):
                return None
            pairs = sorted(zip(term.args, value, strict=True), key=lambda pair: not is_pattern(pair[0]))
            return bindings if all(self.unified(*pair, bindings) is not None for pair in pairs) else None
        if not variables(term) <= bindings.keys():
            return self.solved(term, value, bindings)
        return bindings if self.value(term, bindings) == value else None

    def solved(self, term: Term, value: Any, bindings: Bindings) -> Bindings:
        """``bindings`` with the variable of a sum or a difference of integers whose other part is known, or
        with a condition to check later."""
        kind = self.rules.types.get((term.at, term.name), "") if isinstance(term, Call) else ""
        if isinstance(term, Call) and term.name in "+-" and len(term.args) == 2 and kind in INTEGERS:
            left, right = term.args
            bound = bindings.keys()
            if isinstance(left, Variable) and left.name not in bound and variables(right) <= bound:
                other = self.value(right, bindings)
                bindings[left.name] = wrap(value - other if term.name == "+" else value + other, kind)
            elif isinstance(right, Variable) and right.name not in bound and variables(left) <= bound:
                other = self.value(left, bindings)
                bindings[right.name] = wrap(value - other if term.name == "+" else other - value, kind)
        if not variables(term) <= bindings.keys():
            bindings[_LATER] = (*bindings.get(_LATER, ()), (term, value))
        return bindings

    def agrees(self, bindings: Bindings) -> bool:
        """Whether terms that were left for later have the values that they should."""
        return all(self.equal(term, value, bindings) for term, value in bindings.get(_LATER, ()))

    def equal(self, term: Term, value: Any, bindings: Bindings) -> bool:
        """Whether a term may have a value: a counter has any."""
        return isinstance(term, Counter) or self.value(term, bindings) == value

    def values(self, term: Term, bindings: Bindings) -> Iterator[Any]:
        """The values of a term: none for an aggregate over nothing, many for a range."""
        if isinstance(term, Aggregate):
            value = self.aggregate(term, bindings)
            if value is not None:
                yield value
        elif isinstance(term, Call) and term.name == "range":
            yield from ranged(*(self.value(part, bindings) for part in term.args))
        else:
            yield self.value(term, bindings)

    def value(self, term: Term, bindings: Bindings) -> Any:
        if isinstance(term, Variable):
            return bindings[term.name]
        if isinstance(term, Constant):
            return term.value
        if isinstance(term, Record):
            return tuple(self.value(t, bindings) for t in term.args)
        if isinstance(term, Cast):
            value = self.value(term.value, bindings)
            functor = self.rules.types.get((term.at, "as"))
            if functor is None:
                return value
            number = self.rules.ordinal(value) if isinstance(value, str) else value
            return call(functor, _KINDS[type(number)], [number])
        if isinstance(term, Call):
            args = [self.value(t, bindings) for t in term.args]
            kind = self.rules.types.get((term.at, term.name)) or _KINDS[type(args[0])]
            name = "cat" if term.name == "+" and kind == "symbol" else term.name
            return call(name, kind, args, self.rules.ordinal)
        if isinstance(term, Aggregate):
            value = self.aggregate(term, bindings)
            if value is None:
                raise EngineError(f"`{term.function}` of nothing")
            return value
        return None  # nil

    def aggregate(self, term: Aggregate, bindings: Bindings) -> Any:
        """Over tuples, or over the choices of the named variables."""
        outer = {name: bindings[name] for name in term.outer}
        inside = Matcher(self.rules, self.holds, self.holds)
        solutions = list(inside.body(self.rules._in_order(term.body, set(outer)), 0, outer))
        if counts_bindings(term):
            solutions = list({tuple(sorted(solution.items())): solution for solution in solutions}.values())
        if term.target is None:
            return len(solutions)
        values = [inside.value(term.target, solution) for solution in solutions]
        kind = self.rules.types.get((term.at, term.function), "number")
        if term.function == "sum":
            return added(values, kind)
        if not values:
            return None
        if term.function == "mean":
            return wrap(added(values, kind) / len(values), kind)
        return (min if term.function == "min" else max)(values, key=sort_value)


def is_pattern(term: Term) -> bool:
    """Whether a term can be given a value; all others are computed."""
    return isinstance(term, Variable | Wildcard | Record | Constant | Nil | Counter)


def _has_value(term: Term, bound: AbstractSet[str]) -> bool:
    """Whether a term is one value, once variables are known: a record with an unnamed part is many."""
    return variables(term) <= bound and not holds_wildcard(term)
