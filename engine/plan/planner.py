"""Clauses to plan rules: the order of joins, registers, semi-naive variants.

Join order is greedy. At each point the first of these that is possible comes next:

1. tests, negations and equations whose variables are known,
2. an atom that only tests whether a tuple exists,
3. the atom with the most known columns, if any is known,
4. an aggregate or a range whose variables are known,
5. an atom with no known column.

Ties keep the order of the text. A step that can fail, such as a division, waits for everything written before
it, so that a rule can test its divisor first. A variant of a recursive rule starts with its delta atom, but
tests on constants alone come before it: they skip the rule at once if it does not apply.

Which start is best depends on the tuples: a variant that joins three atoms or more is planned from each of
them, and the evaluator chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import islice

from ..analysis.inference import argument_kinds, cast_functor, cast_kind, kind_of
from ..analysis.projections import BAGS, counts_bindings
from ..analysis.scopes import can_fail, count_uses, holds_generator, holds_wildcard, variables
from ..analysis.types import Types, plan_type
from ..language.syntax import (
    Aggregate,
    Atom,
    Call,
    Cast,
    Clause,
    Comparison,
    Constant,
    Counter,
    IterationCount,
    Literal,
    Negation,
    Nil,
    Record,
    Term,
    Variable,
    Wildcard,
)
from ..language.walk import terms
from .plan import Expression, PlanStep, Rule, Version

_FEWEST_ATOMS, _MOST_ATOMS = 3, 8  # atoms of a rule that is planned in several orders


@dataclass(frozen=True)
class Schema:
    """The relations as the planner sees them: their index, and the kinds of their columns."""

    index: Mapping[str, int]
    kinds: Mapping[str, tuple[str, ...]]
    types: Types
    orders: bool = False  # whether recursive rules are planned in several orders


def plan_clause(
    clause: Clause, kinds: Mapping[str, str], schema: Schema, recursive: Iterable[str], source: int
) -> list[Rule]:
    """The plan rules of a clause: one, or one variant per atom whose relation is in ``recursive``."""
    group = frozenset(recursive)
    deltas = [i for i, x in enumerate(clause.body) if isinstance(x, Atom) and x.name in group]
    if not deltas:
        return [_Planner(clause, kinds, schema).rule({}, (), source)]
    rules = []
    for delta in deltas:
        versions: dict[int, Version] = {
            i: "delta" if i == delta else "old" if i < delta else "all" for i in deltas
        }
        rule = _Planner(clause, kinds, schema).rule(versions, (delta,), source)
        orders = tuple(
            _Planner(clause, kinds, schema).rule(versions, (start,), source)
            for start in _starts(clause, schema)
            if start != delta
        )
        rules.append(replace(rule, orders=orders))
    return rules


def plan_losses(
    clause: Clause, kinds: Mapping[str, str], schema: Schema, lost: Callable[[str], str], source: int
) -> tuple[list[Rule], Rule] | None:
    """The rules that find what a clause derives from tuples that are lost, one for each atom, and the rule
    that finds the ways in which it derives given tuples; None where a term has more than one value.

    ``lost`` names the relation that has the lost tuples, or the given ones, of another; that of the head is
    the head of the rules.
    """
    parts = [*clause.head.args, *(term for literal in clause.body for term in terms(literal))]
    head_kinds = zip(clause.head.args, schema.kinds[clause.head.name], strict=True)
    if any(map(holds_generator, parts)) or not all(_is_found(*each) for each in head_kinds):
        return None
    head = clause.head._replace(name=lost(clause.head.name))
    losing = []
    for i, literal in enumerate(clause.body):
        if isinstance(literal, Atom):
            body = [*clause.body[:i], literal._replace(name=lost(literal.name)), *clause.body[i + 1 :]]
            losing.append(_from(clause._replace(head=head, body=tuple(body)), kinds, schema, i, source))
    proving = clause._replace(head=head, body=(head, *clause.body))
    return losing, _from(proving, kinds, schema, 0, source, whole=True)


def _from(
    clause: Clause, kinds: Mapping[str, str], schema: Schema, first: int, source: int, whole: bool = False
) -> Rule:
    """The rule that begins with an atom, with orders that go on with any other, or begin with it."""
    others = [start for start in _starts(clause, schema, 2) if start != first]
    rule, *orders = (
        _Planner(clause, kinds, schema).rule({}, starts, source, whole)
        for starts in ((first,), *((first, start) for start in others), *((start,) for start in others))
    )
    return replace(rule, orders=tuple(orders))


def _is_found(term: Term, kind: str) -> bool:
    """Whether comparing a term with its value is to ask for the same bits: a computed float may be no number,
    which equals nothing."""
    if isinstance(term, Record):
        return all(_is_found(arg, "") for arg in term.args)
    return not isinstance(term, Call | Cast) or kind in ("number", "unsigned", "symbol")


def _starts(clause: Clause, schema: Schema, fewest: int = _FEWEST_ATOMS) -> list[int]:
    """The atoms from which a clause with so many of them is planned, besides its first one."""
    atoms = [i for i, literal in enumerate(clause.body) if isinstance(literal, Atom)]
    parts = [*clause.head.args, *(term for literal in clause.body for term in terms(literal))]
    fixed = not schema.orders or any(can_fail(term) or holds_generator(term) for term in parts)
    return [] if fixed or not fewest <= len(atoms) <= _MOST_ATOMS else atoms


def constant_arguments(clause: Clause, schema: Schema) -> tuple[Expression, ...] | None:
    """The arguments of a fact whose arguments are all constants, None where something must be computed."""
    if clause.body or not all(isinstance(term, Constant | Nil) for term in clause.head.args):
        return None
    planner = _Planner(clause, {}, schema)
    return planner.values(_Body(), clause.head)


class Expressions:
    """The terms of a clause as expressions over the given registers. They contain no aggregates and
    ranges."""

    def __init__(
        self, clause: Clause, kinds: Mapping[str, str], types: Types, registers: Mapping[str, int]
    ) -> None:
        self._planner = _Planner(clause, kinds, Schema({}, {}, types))
        self._planner.registers.update(registers)

    def value(self, term: Term, kind: str) -> Expression:
        """The expression for a term of a kind."""
        return self._planner.value(_Body(), term, kind)

    def compared(self, literal: Comparison) -> str:
        """The kind of the sides of a comparison."""
        return self._planner.compared(literal)


@dataclass
class _Item:
    """A literal, its variables, and when it is to be placed; a slow one holds an aggregate or range."""

    literal: Literal
    version: Version
    names: set[str]
    slow: bool
    fails: bool
    start: bool = False
    rank: tuple[int, int] = (10, 0)
    placed: bool = False


@dataclass
class _Body:
    """The steps of a body so far, and its literals.

    In a bag every solution counts: also a variable that is used nowhere else has its values, and so has an
    unnamed column unless the bag is of ``bindings``.
    """

    bag: bool = False
    bindings: bool = False
    whole: bool = False  # atoms say which tuples they found: all of their columns have values
    steps: list[PlanStep] = field(default_factory=list)
    items: list[_Item] = field(default_factory=list)


class _Planner:
    """Plans one variant of one clause."""

    def __init__(self, clause: Clause, kinds: Mapping[str, str], schema: Schema) -> None:
        self.clause = clause
        self.kinds = dict(kinds)
        self.schema = schema
        self.registers: dict[str, int] = {}  # variables that have a value
        self.used = 0
        self.occurrences: dict[str, int] = {}
        for term in (*clause.head.args, *(t for x in clause.body for t in terms(x))):
            count_uses(term, self.occurrences)
        self.joined = {
            term.name
            for literal in clause.body
            if isinstance(literal, Atom)
            for term in literal.args
            if isinstance(term, Variable)
        }
        for literal in clause.body[:2] if clause.subsumes else ():
            for term in terms(literal):  # both tuples are looked at once more: they differ
                count_uses(term, self.occurrences)

    def rule(
        self, versions: Mapping[int, Version], starts: Collection[int], source: int, whole: bool = False
    ) -> Rule:
        """The rule with its atoms in these versions. It begins with the literals ``starts``. ``whole``: its
        atoms give values to all of their columns."""
        body = _Body(whole=whole)
        for i, literal in enumerate(self.clause.body):
            body.items.append(self.item(literal, versions.get(i, "all"), i in starts))
        self.place_all(body)
        if self.clause.subsumes:
            self.different(body)
        index, args = self.schema.index[self.clause.head.name], self.values(body, self.clause.head)
        return Rule(index, args, tuple(body.steps), self.used, source)

    def different(self, body: _Body) -> None:
        """Go on only where the first two atoms of a subsuming clause are different tuples."""
        less, greater = (
            ("record", *self.values(body, atom)) for atom in self.clause.body[:2] if isinstance(atom, Atom)
        )
        body.steps.append(("test", "!=", "record", less, greater))

    # ---- Order ------------------------------------------------------------------------------------------

    def item(self, literal: Literal, version: Version = "all", start: bool = False) -> _Item:
        parts = terms(literal)
        names = set().union(*map(variables, parts))
        fails = any(map(can_fail, parts)) or (
            isinstance(literal, Comparison) and literal.operator.endswith("match")
        )
        return _Item(literal, version, names, any(map(holds_generator, parts)), fails, start)

    def place_all(self, body: _Body) -> None:
        """Place the items, those too that steps add: each time one of the least rank, the first of those."""
        items = body.items
        heap: list[tuple[tuple[int, int], int]] = []  # ranks that items have or had, by their numbers
        users: dict[str, list[int]] = {}  # variable -> the items that hold it
        first = seen = bound = 0  # the first item that waits; how many items, and variables, were looked at
        while True:
            changed = set(range(seen, len(items)))
            for i in changed:
                for name in items[i].names:
                    users.setdefault(name, []).append(i)
            # A rank changes where a variable of the literal has got a value, or the literal is the first.
            for name in islice(reversed(self.registers), len(self.registers) - bound):
                changed.update(users.pop(name, ()))
            seen, bound = len(items), len(self.registers)
            while first < seen and items[first].placed:
                first += 1
            if first == seen:
                return
            for i in sorted(i for i in {*changed, first} if not items[i].placed):
                item = items[i]
                rank = self.rank(body, item)
                if item.fails and i > first:
                    rank = max(rank, (7, 0))
                if rank != item.rank:
                    item.rank = rank
                    heappush(heap, (rank, i))
            while True:
                rank, i = heappop(heap)
                if not items[i].placed and items[i].rank == rank:
                    break
            items[i].placed = True
            self.place(body, items[i])

    def rank(self, body: _Body, item: _Item) -> tuple[int, int]:
        """When an item should come, if nothing that can fail is before it: smaller is earlier."""
        if isinstance(item.literal, Atom):
            return self.rank_atom(body, item, item.literal)
        return (9, 0) if not self.ready(item) else (5, 0) if item.slow else (0, 0)

    def rank_atom(self, body: _Body, item: _Item, atom: Atom) -> tuple[int, int]:
        if item.slow and not all(
            variables(t) <= self.registers.keys() for t in atom.args if holds_generator(t)
        ):
            return (8, 0)
        bound = sum(1 for term in atom.args if self.is_known(term))
        asked = sum(1 for term in atom.args if not self.is_ignored(term, body))
        if bound == asked and (bound or not atom.args):
            return (1, 0)
        if item.start:
            return (2, 0)
        return (4, -bound) if bound else (6, 0)

    def ready(self, item: _Item) -> bool:
        """Whether a literal that is not an atom can be a step now."""
        literal, bound = item.literal, self.registers.keys()
        if item.names <= bound:
            return True
        if not isinstance(literal, Comparison) or literal.operator != "=":
            return False
        return any(
            isinstance(target, Variable | Record)
            and variables(value) <= bound
            and not holds_wildcard(value)
            and not self.is_zero_of_atom(target, value)
            for target, value in ((literal.left, literal.right), (literal.right, literal.left))
        )

    def is_zero_of_atom(self, target: Term, value: Term) -> bool:
        """Whether a float may be compared with zero that an atom gives a value: there are two zeros, so that
        it waits for the atom."""
        if not isinstance(target, Variable) or target.name not in self.joined or variables(value):
            return False
        return self.kinds.get(target.name) == "float" and not (isinstance(value, Constant) and value.value)

    def is_known(self, term: Term) -> bool:
        if type(term) is Variable:
            return term.name in self.registers
        return not holds_wildcard(term) and variables(term) <= self.registers.keys()

    def is_ignored(self, term: Term, body: _Body) -> bool:
        """Whether nothing is asked of a column: any value will do."""
        if body.whole:
            return False
        if isinstance(term, Variable):
            return not body.bag and term.name not in self.registers and self.occurrences[term.name] == 1
        return isinstance(term, Wildcard) and (body.bindings or not body.bag)

    # ---- Steps ------------------------------------------------------------------------------------------

    def place(self, body: _Body, item: _Item) -> None:
        literal = item.literal
        if isinstance(literal, Atom):
            self.scan(body, literal, item.version)
        elif isinstance(literal, Negation):
            self.absent(body, literal.atom)
        elif isinstance(literal, Comparison):
            self.comparison(body, literal)
        elif not literal.value:
            zero = ("const", "number", 0)
            body.steps.append(("test", "!=", "number", zero, zero))

    def scan(self, body: _Body, atom: Atom, version: Version) -> None:
        bound: list[tuple[int, Expression]] = []
        free: list[tuple[int, int]] = []
        new: dict[str, int] = {}
        for column, (term, kind) in enumerate(zip(atom.args, self.schema.kinds[atom.name], strict=True)):
            if self.is_known(term):
                bound.append((column, self.value(body, term, kind)))
            elif self.is_ignored(term, body):
                continue
            else:
                register = self.new_register()
                free.append((column, register))
                if isinstance(term, Wildcard):
                    continue
                if isinstance(term, Variable) and term.name not in new:
                    new[term.name] = register
                    continue
                # The value is compared once everything in the term is known.
                name = f"#{register}"
                new[name] = register
                self.kinds[name] = kind
                body.items.append(self.item(Comparison("=", Variable(name, atom.at), term, atom.at)))
        self.registers |= new
        body.steps.append(("scan", self.schema.index[atom.name], version, tuple(bound), tuple(free)))

    def absent(self, body: _Body, atom: Atom) -> None:
        bound = tuple(
            (column, self.value(body, term, kind))
            for column, (term, kind) in enumerate(zip(atom.args, self.schema.kinds[atom.name], strict=True))
            if not isinstance(term, Wildcard)
        )
        body.steps.append(("absent", self.schema.index[atom.name], bound))

    def comparison(self, body: _Body, literal: Comparison) -> None:
        operator, left, right = literal.operator, literal.left, literal.right
        if operator == "=":
            bound = self.registers.keys()
            for target, value in ((left, right), (right, left)):
                if not variables(value) <= bound or holds_wildcard(value):
                    continue
                if isinstance(target, Variable) and target.name not in bound:
                    self.let(body, target.name, value)
                    return
                if isinstance(target, Record) and (not variables(target) <= bound or holds_wildcard(target)):
                    self.unpack(body, target, value)
                    return
        kind = self.compared(literal)
        body.steps.append(
            ("test", operator, plan_type(kind), self.value(body, left, kind), self.value(body, right, kind))
        )

    def let(self, body: _Body, name: str, value: Term) -> None:
        kind = self.kinds.get(name) or self.kind(value) or "number"
        expression = self.value(body, value, kind)
        if expression[0] == "reg":
            assert isinstance(expression[1], int)
            self.registers[name] = expression[1]
        else:
            self.registers[name] = register = self.new_register()
            body.steps.append(("let", register, expression))

    def unpack(self, body: _Body, target: Record, value: Term) -> None:
        """Match a value with a record pattern whose fields are not all known."""
        kind = self.kind(value) or self.kind(target)
        assert kind is not None
        source = self.value(body, value, kind)
        registers: list[int] = []
        for term, field_kind in zip(target.args, self.schema.types.fields[kind], strict=True):
            if isinstance(term, Wildcard) or self.is_ignored(term, body):
                registers.append(-1)
                continue
            register = self.new_register()
            registers.append(register)
            if isinstance(term, Variable) and term.name not in self.registers:
                self.registers[term.name] = register
                continue
            name = f"#{register}"
            self.registers[name] = register
            self.kinds[name] = field_kind
            body.items.append(self.item(Comparison("=", Variable(name, target.at), term, target.at)))
        body.steps.append(("unpack", source, tuple(registers)))

    def aggregate(self, body: _Body, term: Aggregate) -> Expression:
        for literal in term.body:
            for inner in terms(literal):
                count_uses(inner, self.occurrences)
        if term.target is not None:
            count_uses(term.target, self.occurrences)
        outside = dict(self.registers)
        inside = _Body(term.function in BAGS, counts_bindings(term))
        inside.items = [self.item(literal) for literal in term.body]
        self.place_all(inside)
        target: Expression | None = None
        kind = "number"
        if term.target is not None:
            kind = self.kind(term.target) or "number"
            target = self.value(inside, term.target, kind)
        self.registers = outside
        register = self.new_register()
        body.steps.append(
            ("aggregate", register, term.function, plan_type(kind), target, tuple(inside.steps))
        )
        return ("reg", register)

    def range(self, body: _Body, bounds: tuple[Expression, ...], kind: str) -> Expression:
        step = bounds[2] if len(bounds) == 3 else None
        register = self.new_register()
        body.steps.append(("range", register, plan_type(kind), *bounds[:2], step))
        return ("reg", register)

    def new_register(self) -> int:
        self.used += 1
        return self.used - 1

    # ---- Expressions ------------------------------------------------------------------------------------

    def values(self, body: _Body, atom: Atom) -> tuple[Expression, ...]:
        """The expressions for the arguments of an atom."""
        kinds = self.schema.kinds[atom.name]
        return tuple(self.value(body, term, kind) for term, kind in zip(atom.args, kinds, strict=True))

    def value(self, body: _Body, term: Term, kind: str) -> Expression:
        """The expression for a term of a kind; aggregates and ranges in it become steps of ``body``."""
        if isinstance(term, Variable):
            return ("reg", self.registers[term.name])
        if isinstance(term, Constant):
            if term.kind == "integer":
                return ("const", kind, float(term.value) if kind == "float" else term.value)
            return ("const", term.kind, term.value)
        if isinstance(term, Nil):
            return ("const", "record", None)
        if isinstance(term, Cast):
            return self.cast(body, term)
        if isinstance(term, Aggregate):
            return self.aggregate(body, term)
        if isinstance(term, Counter | IterationCount):
            register = self.new_register()
            body.steps.append(("next" if isinstance(term, Counter) else "round", register))
            return ("reg", register)
        assert isinstance(term, Call | Record)
        kinds = argument_kinds(term, kind, self.kinds, self.schema.types)
        args = tuple(self.value(body, arg, k) for arg, k in zip(term.args, kinds, strict=True))
        if isinstance(term, Record):
            return ("record", *args)
        if term.name == "range":
            return self.range(body, args, kind)
        name = "cat" if term.name == "+" and kinds[0] == "symbol" else term.name
        return ("call", name, plan_type(kinds[0]), *args)

    def cast(self, body: _Body, term: Cast) -> Expression:
        """A value used as another type: a symbol becomes its number."""
        inside = cast_kind(term, self.kinds, self.schema.types)
        value = self.value(body, term.value, inside)
        functor = cast_functor(term, self.kinds, self.schema.types)
        if functor is None:
            return value
        if inside == "symbol":
            inside, value = "number", ("call", "ord", "symbol", value)
        return ("call", functor, inside, value)

    def compared(self, literal: Comparison) -> str:
        """The kind of the sides of a comparison."""
        if literal.operator.endswith(("match", "contains")):
            return "symbol"
        return self.kind(literal.left) or self.kind(literal.right) or "number"

    def kind(self, term: Term) -> str | None:
        return kind_of(term, self.kinds, self.schema.types)
