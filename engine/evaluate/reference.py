"""The reference evaluator: runs a plan in plain Python, as literally as possible.

``core`` must agree with it, and an installation without ``core`` uses it. Functors are in ``functors``.

``mean`` is the sum divided by the count. Sums of floats add in the order of solutions.

Output. Tuples are sorted column by column: numbers by value (NaN last), symbols by code point, records with
nil first and then field by field.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

from ..language.diagnostics import EngineError
from ..plan.needs import needed
from ..plan.plan import Expression, PlanStep, QueryPlan, Rule, Stratum
from .floats import plain
from .functors import TESTS, Registers, Value, added, choice_key, evaluate, ranged, sort_key, wrap
from .limits import UNLIMITED, Budget, LimitError, Limits
from .ordinals import Ordinals

Tuple = tuple[Value, ...]


class Table:
    """A set of tuples with an index for every set of columns that was asked for."""

    def __init__(self) -> None:
        self.tuples: dict[Tuple, None] = {}
        self.rounds: list[int] = []  # how many tuples there were when each round but the first began
        self._indices: dict[tuple[int, ...], dict[Tuple, list[Tuple]]] = {}

    def remove(self, row: Tuple) -> None:
        """Remove a tuple, if it is there; the indexes are made anew."""
        if self.tuples.pop(row, self) is None:
            self._indices.clear()

    def sort(self) -> None:
        """Put the tuples in their order."""
        self.tuples = dict.fromkeys(sorted(self.tuples, key=sort_key))
        self._indices.clear()

    def __contains__(self, row: Tuple) -> bool:
        return row in self.tuples

    def add(self, row: Tuple) -> None:
        """Add a tuple that is not there yet."""
        self.tuples[row] = None
        for columns, index in self._indices.items():
            index.setdefault(tuple(row[c] for c in columns), []).append(row)

    def matching(self, columns: tuple[int, ...], key: Tuple) -> Collection[Tuple]:
        """The tuples whose ``columns`` hold ``key``."""
        if not columns:
            return self.tuples
        index = self._indices.get(columns)
        if index is None:
            index = self._indices[columns] = {}
            for row in self.tuples:
                index.setdefault(tuple(row[c] for c in columns), []).append(row)
        return index.get(key, ())


class Evaluation:
    """The relations of a plan while it is evaluated."""

    def __init__(
        self,
        plan: QueryPlan,
        shared: Evaluation | None = None,
        limits: Limits = UNLIMITED,
        ordinals: Ordinals | None = None,
    ) -> None:
        """``shared`` has the relations of a keyed program that are not keyed: read here, never added to."""
        self._plan = plan
        self.ordinals = Ordinals(plan) if ordinals is None else ordinals
        self._limits, self._budget = limits, Budget(limits)
        self._all = [Table() for _ in plan.relations]
        self._old: dict[int, Table] = {}  # of the relations that are iterated, as those of the last round
        self._delta: dict[int, Table] = {}
        self._taken: dict[
            int, list[set[Tuple]]
        ] = {}  # by relation: the values of tuples, per group of a choice
        self._next = 0
        self.applied: list[tuple[int, int, int, float, int]] = []  # as ``Store.profile`` returns it
        self._at = (0, 0)  # the stratum and the round
        if shared is None:
            for relation, arguments in plan.facts:
                self.insert(relation, [tuple(evaluate(a, []) for a in arguments)])
        else:
            self._all = [
                own if relation.keyed else other
                for relation, own, other in zip(plan.relations, self._all, shared._all, strict=True)
            ]
        self._tables: dict[str, list[Table] | dict[int, Table]]
        self._tables = {"all": self._all, "delta": self._delta, "old": self._old}

    def give(self, relation: int, rows: Collection[Tuple]) -> None:
        """Add facts, before the strata run."""
        self.ordinals.note(self._plan.relations[relation], rows)
        self.insert(relation, rows)

    def insert(self, relation: int, rows: Iterable[Tuple]) -> None:
        """Add tuples before the strata run."""
        for row in self._closed(relation, rows):
            self._all[relation].add(row)

    def rows(self, relation: int) -> list[Tuple]:
        """The tuples of a relation, sorted."""
        try:
            return list(map(plain, sorted(self._all[relation].tuples, key=sort_key)))
        except RecursionError:
            name = self._plan.relations[relation].name
            raise EngineError(f"`{name}` has records that are nested too deeply") from None

    def found(self, relation: int) -> tuple[list[Tuple], list[int]]:
        """The tuples of a relation in the order of derivation, and their number at the start of each round
        after the first."""
        table = self._all[relation]
        return list(table.tuples), table.rounds

    def run(self, strata: Sequence[Stratum], wanted: Iterable[int]) -> None:
        """Compute the strata that the ``wanted`` relations depend on, in order, each semi-naively."""
        self._budget = Budget(self._limits)
        numbers = {id(stratum): number for number, stratum in enumerate(self._plan.strata)}
        for stratum in needed(self._plan, strata, wanted):
            self._at = (numbers[id(stratum)], 0)
            new = self._fire_all(stratum, stratum.rules)
            for relation in stratum.relations:
                self.insert(relation, list(new[relation]))
            if stratum.recursive or stratum.after:
                self._iterate(stratum)
            for relation in stratum.relations:
                if self._plan.relations[relation].sorted:
                    self._all[relation].sort()

    def _fire_all(self, stratum: Stratum, rules: Sequence[int]) -> dict[int, dict[Tuple, None]]:
        """The new tuples that rules of a stratum derive, by relation."""
        heads = (*stratum.relations, *stratum.candidates, *stratum.superfluous)
        new: dict[int, dict[Tuple, None]] = {r: {} for r in heads}
        for index in rules:
            rule, start = self._plan.rules[index], perf_counter()
            before = len(new[rule.head])
            if not self._lacks(rule.steps):
                self._fire(rule, new)
            count = len(new[rule.head]) - before
            self.applied.append((rule.source, *self._at, perf_counter() - start, count))
        for candidates in stratum.candidates:
            relation = self._plan.relations[candidates].gives
            assert relation is not None
            new[relation].update(self._chosen(relation, new[candidates]))
        return new

    def _lacks(self, steps: Sequence[PlanStep]) -> bool:
        """Whether a rule begins with scans, and one of them has no tuples."""
        step: Any
        for step in steps:
            if step[0] != "scan":
                return False
            if not self._tables[step[2]][step[1]].tuples:
                return True
        return False

    def _chosen(self, relation: int, candidates: Iterable[Tuple]) -> dict[Tuple, None]:
        """The candidates that agree with no tuple on the columns of a choice, nor with one before them."""
        choices = self._plan.relations[relation].choices
        if relation not in self._taken:
            rows = self._all[relation].tuples
            self._taken[relation] = [{tuple(row[c] for c in columns) for row in rows} for columns in choices]
        chosen: dict[Tuple, None] = {}
        for row in sorted(candidates, key=lambda row: choice_key(row, self.ordinals)):
            parts = [tuple(row[c] for c in columns) for columns in choices]
            taken = list(zip(self._taken[relation], parts, strict=True))
            if not any(part in keys for keys, part in taken):
                chosen[row] = None
                for keys, part in taken:
                    keys.add(part)
        return chosen

    def _end_round(self, stratum: Stratum) -> None:
        """Delete superfluous tuples, and note the tuples of the round."""
        if not stratum.after:
            return
        new = self._fire_all(stratum, stratum.after)
        for superfluous in stratum.superfluous:
            relation = self._plan.relations[superfluous].gives
            assert relation is not None
            for row in new[superfluous]:
                for table in (self._all[relation], self._old[relation], self._delta[relation]):
                    table.remove(row)
        for relation in stratum.relations:
            self.insert(relation, list(new[relation]))

    def _iterate(self, stratum: Stratum) -> None:
        relations = stratum.relations
        for r in relations:
            self._old[r] = Table()
            self._delta[r] = self._all[r]
        self._end_round(stratum)
        while any(self._delta[r].tuples for r in relations):
            self._at = (self._at[0], self._at[1] + 1)
            new = self._fire_all(stratum, stratum.recursive)
            for r in relations:
                for row in self._delta[r].tuples:
                    self._old[r].add(row)
                self._delta[r] = Table()
                for row in self._closed(r, new[r]):
                    self._delta[r].add(row)
            for r in relations:
                self._all[r].rounds.append(len(self._all[r].tuples))
                if self._all[r] is not self._delta[r]:
                    for row in self._delta[r].tuples:
                        self._all[r].add(row)
            self._end_round(stratum)
            if any(self._is_full(r) for r in relations):
                return

    def _is_full(self, relation: int) -> bool:
        """Whether a relation has as many tuples as it may."""
        most = self._plan.relations[relation].most
        return most is not None and len(self._all[relation].tuples) >= most

    def _closed(self, relation: int, rows: Iterable[Tuple]) -> list[Tuple]:
        """The new rows, with the rows that close an eqrel again."""
        try:
            return self._equivalent(relation, rows)
        except LimitError as error:
            name = self._plan.relations[relation].name
            raise LimitError(f"the facts of `{name}`: {error}") from None

    def _equivalent(self, relation: int, rows: Iterable[Tuple]) -> list[Tuple]:
        relation_rows = self._all[relation].tuples
        new = dict.fromkeys([row for row in rows if row not in relation_rows])
        if not self._plan.relations[relation].eqrel or not new:
            return list(new)
        classes: dict[Value, list[Value]] = {}
        for a, b in [*relation_rows, *new]:
            left, right = classes.setdefault(a, [a]), classes.setdefault(b, [b])
            if left is not right:
                left += right
                for member in right:
                    classes[member] = left
        pairs: dict[Tuple, None] = {}
        for members in classes.values():
            for a in members:
                for b in members:
                    self._budget.look()
                    if (a, b) not in relation_rows and (a, b) not in pairs:
                        pairs[a, b] = None
                        self._budget.derive((a, b))
        return list(pairs)

    def _fire(self, rule: Rule, new: Mapping[int, dict[Tuple, None]]) -> None:
        existing, added = self._all[rule.head], new[rule.head]
        registers: Registers = [None] * rule.registers
        try:
            for _ in self._solve(rule.steps, 0, registers):
                row = tuple(self._value(argument, registers) for argument in rule.args)
                if row not in existing and row not in added:
                    added[row] = None
                    self._budget.derive(row, rule.source)
        except LimitError as error:
            busiest = (f"\n  {count} tuples by {self._place(n)}" for n, count in self._budget.busiest())
            raise LimitError(f"{self._place(rule.source)}: {error}{''.join(busiest)}") from None
        except EngineError as error:
            raise EngineError(f"{self._place(rule.source)}: {error}") from None
        except (MemoryError, RecursionError) as error:
            what = "there is no more memory" if isinstance(error, MemoryError) else "this nests too deeply"
            raise EngineError(f"{self._place(rule.source)}: {what}; bound the recursion") from None

    def _place(self, source: int) -> str:
        return f"{self._plan.sources[source].file}:{self._plan.sources[source].line}"

    def _solve(self, steps: Sequence[PlanStep], at: int, registers: Registers) -> Iterator[None]:
        """Run ``steps`` from ``at`` on; yields once per solution, which then stands in ``registers``."""
        if at == len(steps):
            yield
            return
        step: Any = steps[at]
        for _ in STEPS[step[0]](self, step, registers):
            yield from self._solve(steps, at + 1, registers)

    def _value(self, expression: Expression, registers: Registers) -> Value:
        return evaluate(expression, registers, self.ordinals.__getitem__)

    # ---- Steps: each yields once per way to go on -----------------------------------------------

    def _scan(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        for _ in self._rows(step, registers):
            yield

    def _rows(self, step: tuple[Any, ...], registers: Registers) -> Iterator[Tuple]:
        """The tuples of a scan, whole, each after its columns stand in the registers."""
        _, relation, version, bound, free = step
        look = self._budget.look
        for row in self._matching(self._tables[version][relation], bound, registers):
            look()
            for column, register in free:
                registers[register] = row[column]
            yield row
            if not free:
                return

    def _absent(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        _, relation, bound = step
        if not self._matching(self._all[relation], bound, registers):
            yield

    def _matching(self, table: Table, bound: Sequence[Any], registers: Registers) -> Collection[Tuple]:
        """The tuples of a table whose columns hold what they are bound to."""
        if not table.tuples:
            return ()
        columns, expressions = zip(*bound, strict=True) if bound else ((), ())
        return table.matching(columns, tuple([self._value(each, registers) for each in expressions]))

    def _test(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        _, operator, _, left, right = step
        if TESTS[operator](self._value(left, registers), self._value(right, registers)):
            yield

    def _let(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        _, register, expression = step
        registers[register] = self._value(expression, registers)
        yield

    def _round(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        registers[step[1]] = self._at[1]
        yield

    def _next_number(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        registers[step[1]] = self._next
        self._next += 1
        yield

    def _unpack(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        _, expression, targets = step
        record = self._value(expression, registers)
        if record is not None:
            for register, value in zip(targets, record, strict=True):
                if register >= 0:
                    registers[register] = value
            yield

    def _range(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        _, register, _, start, end, by = step
        parts = (start, end) if by is None else (start, end, by)
        for value in ranged(*(self._value(part, registers) for part in parts)):
            self._budget.look()
            registers[register] = value
            yield

    def _aggregate(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        _, register, function, kind, target, steps = step
        values: list[Value] = []
        for _ in self._solve(steps, 0, registers):
            values.append(0 if target is None else self._value(target, registers))
        if function == "count":
            registers[register] = len(values)
        elif function == "sum":
            registers[register] = added(values, kind)
        elif not values:
            return
        elif function == "mean":
            registers[register] = wrap(added(values, kind) / len(values), kind)
        else:
            registers[register] = (min if function == "min" else max)(values, key=sort_key)
        yield


STEPS: dict[str, Callable[[Evaluation, tuple[Any, ...], Registers], Iterator[None]]] = {
    "scan": Evaluation._scan,
    "absent": Evaluation._absent,
    "test": Evaluation._test,
    "let": Evaluation._let,
    "unpack": Evaluation._unpack,
    "next": Evaluation._next_number,
    "round": Evaluation._round,
    "range": Evaluation._range,
    "aggregate": Evaluation._aggregate,
}
