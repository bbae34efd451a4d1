"""Lattices: of the tuples that agree in all other columns one is left, which has the least upper bound.

Rules with subsumption express this. With ``.lattice Set<> { Lub -> _ bor _, ... }`` the relation ``r(x:
number, s: Set<>)`` gets

    r(x, a) <= r(x, b) :- b = a bor b.
    r(x, a bor b) :- r@joined(x, a, b).
    r@joined(x, a, b) :- r(x, a), r(x, b), a != a bor b, b != a bor b.

In bodies of rules, an atom holds for every value that is not above its tuple's, if the lattice has a greatest
lower bound and a least value: ``r(x, 5)`` is ``r(x, s), s band 5 = 5``; a variable that two atoms share is
the bound of both values, unless that is the least; ``!r(x, 5)`` holds if there is no tuple, or if the bound
is the least. In aggregates such columns are like others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain, product
from math import prod
from typing import NamedTuple

from ..analysis.checks import grounded_by
from ..analysis.scopes import holds_wildcard, variables
from ..language.clauses import MOST_ALTERNATIVES
from ..language.diagnostics import Reporter, did_you_mean
from ..language.parser import BOUNDS
from ..language.syntax import (
    Atom,
    Call,
    Clause,
    ColumnDeclaration,
    Comparison,
    Lattice,
    Literal,
    Module,
    Negation,
    RelationDeclaration,
    RuleText,
    Term,
    Variable,
    Wildcard,
)
from ..language.walk import terms
from .magic import Clauses

_OPERATORS = ("Bottom", "Top", "Lub", "Glb")
_PAIRS = "@joined"  # of the joins of two tuples of a relation
_CHOOSING = {"max": "<=", "min": ">="}  # give one of two values: the second where these are so
_FUNCTORS = (*_CHOOSING, "bor", "band")


def lower_lattices(module: Module, reporter: Reporter) -> bool:
    """Replace the lattices of a module, whose components have been replaced, by rules. False after errors."""
    errors = len(reporter)
    if module.lattices or any(column.lattice for r in module.relations for column in r.columns):
        _LatticeLowering(module, reporter).run()
    return len(reporter) == errors


def is_pairs(name: str) -> bool:
    """Whether a relation has the pairs of tuples that are joined."""
    return name.endswith(_PAIRS)


def unfolded(clauses: Clauses, paired: bool) -> Clauses:
    """Clauses that join two tuples directly, in place of clauses that go through pairs; ``paired``: only two
    that are a pair."""
    pairs: dict[str, Clauses] = {}
    for clause, kinds in clauses:
        if is_pairs(clause.head.name):
            pairs.setdefault(clause.head.name, []).append((clause, kinds))
    unfolded: Clauses = []
    for clause, kinds in clauses:
        first = clause.body[0] if clause.body else None
        if isinstance(first, Atom) and is_pairs(first.name):
            last = (first,) if paired else ()
            unfolded += [(clause._replace(body=(*pair.body, *last)), kinds) for pair, _ in pairs[first.name]]
        elif clause.head.name not in pairs:
            unfolded.append((clause, kinds))
    return unfolded


class _Order(NamedTuple):
    """The functors of a lattice, and its least value; "" and None where it has none."""

    lub: str
    glb: str
    bottom: Term | None
    text: RuleText

    def met(self, one: Variable, other: Term) -> Call:
        """The greatest lower bound of a tuple's value and another value."""
        return Call(self.glb, (one, other), one.at)


class _LatticeLowering:
    def __init__(self, module: Module, reporter: Reporter) -> None:
        self._module, self._reporter = module, reporter
        self._orders: dict[str, _Order] = {}  # by type
        self._columns: dict[str, dict[int, _Order]] = {}  # of relations

    def run(self) -> None:
        module, errors = self._module, len(self._reporter)
        for lattice in module.lattices:
            self._declare(lattice)
        for relation in module.relations:
            if any(column.lattice for column in relation.columns):
                self._check(relation)
        if len(self._reporter) > errors:
            return
        module.clauses = [new for clause in module.clauses for new in self._clause(clause)]
        for relation in list(module.relations):
            if self._columns.get(relation.name):
                module.clauses += self._rules(relation, self._columns[relation.name])
        plain = [tuple(c._replace(lattice=False) for c in r.columns) for r in module.relations]
        module.relations = [
            r._replace(columns=columns) for r, columns in zip(module.relations, plain, strict=True)
        ]
        module.lattices = []

    # ---- Declarations -----------------------------------------------------------------------------------

    def _declare(self, lattice: Lattice) -> None:
        error, name = self._reporter.error, lattice.name
        if name in self._orders:
            error("E0202", lattice.at, f"the lattice `{name}<>` is declared twice")
        types = {declared.name for declared in self._module.types} | {"number", "unsigned", "float", "symbol"}
        if name not in types:
            error("E0201", lattice.at, f"unknown type `{name}`", partial(did_you_mean, name, types))
        given: dict[str, Term] = {}
        for operator, term, at in lattice.operators:
            if operator not in _OPERATORS:
                hint = f"it is one of {', '.join(_OPERATORS)}"
                error("E0201", at, f"unknown operator `{operator}` of a lattice", hint)
            elif operator in given:
                error("E0202", at, f"`{operator}` is given twice")
            elif operator in ("Lub", "Glb") and not _is_bound(term):
                error(
                    "E0105",
                    at,
                    f"`{operator}` is a functor that is not supported here",
                    f"it may be {BOUNDS}",
                )
            given.setdefault(operator, term)
        if "Lub" not in given:
            hint = f"as in .lattice {name}<> {{ Lub -> max(_, _) }}"
            error("E0303", lattice.at, f"the lattice `{name}<>` has no `Lub`", hint)
        if missing := " and no ".join(f"`{name}`" for name in ("Glb", "Bottom") if name not in given):
            message = f"the lattice `{name}<>` has no {missing}: the order of its values is not known"
            self._reporter.warning("W0405", lattice.at, message)
        lub, glb = (term.name if isinstance(term, Call) else "" for term in map(given.get, ("Lub", "Glb")))
        self._orders[name] = _Order(lub, glb, given.get("Bottom"), lattice.text)

    def _check(self, relation: RelationDeclaration) -> None:
        error, name = self._reporter.error, relation.name
        orders: dict[int, _Order] = {}
        for i, column in enumerate(relation.columns):
            if column.lattice and column.type_name in self._orders:
                orders[i] = self._orders[column.type_name]
            elif column.lattice and not self._module.unread:
                error("E0201", column.at, f"there is no lattice for the type `{column.type_name}`")
            elif not column.lattice and any(other.lattice for other in relation.columns[:i]):
                error("E0303", column.at, f"the column `{column.name}` follows a column of a lattice")
        if unfit := relation.qualifiers & {"eqrel", "inline", "brie", "btree_delete"}:
            error("E0303", relation.at, f"`{name}` has lattices, and cannot be {' and '.join(sorted(unfit))}")
        for clause in self._module.clauses:
            if clause.subsumes and clause.head.name == name:
                error("E0303", clause.head.at, f"`{name}` has lattices, which already merge its tuples")
        self._columns[name] = orders

    def _rules(self, relation: RelationDeclaration, orders: Mapping[int, _Order]) -> list[Clause]:
        """The rules that leave one of the tuples that agree in all other columns of a relation."""
        at, columns = relation.at, relation.columns
        text = next(iter(orders.values())).text
        one, other = (_row(columns, orders, which) for which in "ab")
        bounds = {i: Call(order.lub, (one[i], other[i]), columns[i].at) for i, order in orders.items()}
        before, after = Atom(relation.name, one, at), Atom(relation.name, other, at)
        above = tuple(
            Comparison(_CHOOSING[order.lub], one[i], other[i], columns[i].at)
            if order.lub in _CHOOSING
            else Comparison("=", other[i], bounds[i], columns[i].at)
            for i, order in orders.items()
        )
        rules = [Clause(before, (before, after, *above), text, subsumes=True)]
        if len(orders) == 1 and all(order.lub in _CHOOSING for order in orders.values()):
            return rules
        joined = self._pairs(relation, one, other)
        for i, j in product(bounds, bounds):  # neither is above the other
            apart = (Comparison("!=", row[k], bounds[k], columns[k].at) for row, k in ((one, i), (other, j)))
            rules.append(Clause(joined, (before, after, *apart), text))
        head = before._replace(args=tuple(bounds.get(i, term) for i, term in enumerate(one)))
        return [*rules, Clause(head, (joined,), text, joins=True)]

    def _pairs(self, relation: RelationDeclaration, one: tuple[Term, ...], other: tuple[Term, ...]) -> Atom:
        """An atom for the tuples to join. Each joins one other tuple, so half as many remain. All pairs would
        give all joins of many tuples."""
        columns = relation.columns
        shared = tuple(column for column in columns if not column.lattice)
        halves = [
            tuple(column._replace(name=f"{column.name}@{which}") for column in columns if column.lattice)
            for which in "ab"
        ]
        choices = tuple((tuple(c.name for c in (*shared, *half)), relation.at) for half in halves)
        name = relation.name + _PAIRS
        declared = RelationDeclaration(
            name, (*shared, *halves[0], *halves[1]), frozenset(), relation.at, choices
        )
        self._module.relations.append(declared)
        return Atom(name, (*one, *other[len(shared) :]), relation.at)

    # ---- Bodies -----------------------------------------------------------------------------------------

    def _clause(self, clause: Clause) -> Iterable[Clause]:
        """The replacements of a clause: several if it negates an atom with compared columns."""
        compared = [self._compared(literal) for literal in clause.body]
        if not any(compared):
            return [clause]
        bare = [
            _with(literal, dict.fromkeys(columns, Wildcard(literal.at)))
            for literal, columns in zip(clause.body, compared, strict=True)
        ]
        grounded = grounded_by(bare, set())
        open_ = Counter(
            term.name
            for literal, columns in zip(clause.body, compared, strict=True)
            for term in (terms(literal)[i] for i in columns if isinstance(literal, Atom))
            if isinstance(term, Variable) and term.name not in grounded
        )
        shared: dict[str, Term] = {}  # the meaning of variables that several atoms share
        orders: dict[str, _Order] = {}
        body: list[list[list[Literal]]] = []
        for literal, columns in zip(clause.body, compared, strict=True):
            args: dict[int, Term] = {}
            tests: list[Literal] = []
            for i, order in columns.items() if isinstance(literal, Atom) else ():
                term = terms(literal)[i]
                name = term.name if isinstance(term, Variable) and term.name not in grounded else ""
                if open_[name] == 1:
                    continue
                args[i] = own = _own(term)
                if name:
                    shared[name] = order.met(own, shared[name]) if name in shared else own
                    orders[name] = order
                elif variables(term) <= grounded and not holds_wildcard(term):
                    tests.append(Comparison("=", term, order.met(own, term), own.at))
                else:
                    message = "this has no value with which that of the lattice could be compared"
                    self._reporter.error("E0401", own.at, message)
            if isinstance(literal, Negation) and columns:
                body.append(_denied(literal.atom, columns))
            else:
                body.append([[_with(literal, args), *tests]])
        for literal in bare:
            for name in set().union(*map(variables, terms(literal))) & shared.keys():
                message = f"`{name}` is the bound of what several atoms have: only the head may use it"
                self._reporter.error("E0401", literal.at, message)
        for name, bound in shared.items():
            own = Variable(name, clause.head.at)
            least = orders[name].bottom
            assert least is not None
            body.append([[Comparison("=", own, bound, own.at), Comparison("!=", own, least, own.at)]])
        if prod(map(len, body)) > MOST_ALTERNATIVES:
            hint = "give some of them a relation of their own"
            self._reporter.error("E0107", clause.head.at, "this rule denies too much of lattices", hint)
            return []
        return [clause._replace(body=tuple(chain(*ways)), plans=()) for ways in product(*body)]

    def _compared(self, literal: Literal) -> dict[int, _Order]:
        """The columns of an atom, or of one that is denied, where something is compared with a lattice."""
        atom = literal.atom if isinstance(literal, Negation) else literal
        orders = self._columns.get(atom.name, {}) if isinstance(atom, Atom) else {}
        args = terms(literal)
        return {
            i: order
            for i, order in orders.items()
            if order.glb and order.bottom and i < len(args) and not isinstance(args[i], Wildcard)
        }


def _is_bound(term: Term) -> bool:
    """Whether a term is a functor of two values that are left out."""
    return (
        isinstance(term, Call) and term.name in _FUNCTORS and [*map(type, term.args)] == [Wildcard, Wildcard]
    )


def _row(columns: Iterable[ColumnDeclaration], orders: Mapping[int, _Order], which: str) -> tuple[Term, ...]:
    """The arguments of one of two atoms that agree in the columns without lattices."""
    return tuple(
        Variable(f"{column.name}@{which}" if i in orders else f"{column.name}@", column.at)
        for i, column in enumerate(columns)
    )


def _own(term: Term) -> Variable:
    """A variable for the value of a tuple in place of a term."""
    at = term.at
    return Variable(f"{term.name if isinstance(term, Variable) else 'lattice'}@{at}", at)


def _with(literal: Literal, args: Mapping[int, Term]) -> Literal:
    """An atom with other arguments in some columns; other literals are unchanged."""
    if not isinstance(literal, Atom):
        return literal
    return literal._replace(args=tuple(args.get(i, term) for i, term in enumerate(literal.args)))


def _denied(atom: Atom, columns: Mapping[int, _Order]) -> list[list[Literal]]:
    """The ways in which an atom does not hold: no tuple exists, or the bound with its value is the least."""
    anything: dict[int, Term] = dict.fromkeys(columns, Wildcard(atom.at))
    absent = _with(atom, anything)
    assert isinstance(absent, Atom)
    ways: list[list[Literal]] = [[Negation(absent, atom.at)]]
    for i, order in columns.items():
        own = _own(atom.args[i])
        assert order.bottom is not None
        nothing = Comparison("=", order.met(own, atom.args[i]), order.bottom, own.at)
        ways.append([_with(atom, {**anything, i: own}), nothing])
    return ways
