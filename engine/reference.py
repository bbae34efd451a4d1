"""The reference evaluator: runs a plan in plain Python, as literally as possible.

It is what ``core`` must agree with, and what an installation without ``core`` falls back to. Where a plan
leaves something open, this is what it means:

Numbers. ``number`` and ``unsigned`` wrap around at 64 bits. ``/`` and ``%`` truncate towards zero, as in C; a
zero divisor raises EngineError. ``^`` of integers multiplies as often as the exponent says (wrapping
around); a negative exponent gives 0, except for the bases 1 and -1. Shifts take the low 6 bits of their right
argument; ``bshr`` keeps the sign of a ``number``, ``bshru`` does not. ``land``, ``lor``, ``lxor`` and
``lnot`` give 0 or 1. Floats follow IEEE 754 (x / 0.0 is infinite or NaN), but every NaN is one value and -0.0
is 0.0.

Symbols are compared by code point. ``strlen`` and ``substr`` count code points; ``substr`` is empty where its
start is negative or beyond the end, and stops at the end. ``to_string`` of a float has six decimals, as C's
"%f". ``to_number``, ``to_unsigned`` and ``to_float`` of a symbol take decimal digits with a sign, floats with
a point and an exponent too; anything else raises EngineError. A float becomes an integer by truncation
(saturating, NaN is 0). ``ord`` is the value itself as a ``number``; of a symbol it is the FNV-1a hash (64
bits) of its UTF-8 bytes, which is the same everywhere. ``match(pattern, text)`` matches the whole text.

``range`` with step 0 gives its start once, unless that is its end. ``mean`` is the sum divided by the count.
Sums of floats add in the order of solutions.

Output. Tuples are sorted column by column: numbers by value (NaN last), symbols by code point, records
with nil first and then field by field.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from .diagnostics import EngineError
from .plan import Expression, Plan, Rule, Step, Stratum

Value = Any  # int, float, str, or a record: a tuple or None
Tuple = tuple[Value, ...]
Registers = list[Value]

_MASK = (1 << 64) - 1


class Table:
    """A set of tuples with an index for every set of columns that was asked for."""

    def __init__(self) -> None:
        self.tuples: dict[Tuple, None] = {}
        self._indices: dict[tuple[int, ...], dict[Tuple, list[Tuple]]] = {}

    def __contains__(self, row: Tuple) -> bool:
        return row in self.tuples

    def add(self, row: Tuple) -> None:
        """Add a tuple that is not there yet."""
        self.tuples[row] = None
        for columns, index in self._indices.items():
            index.setdefault(tuple(row[c] for c in columns), []).append(row)

    def matching(self, columns: tuple[int, ...], key: Tuple) -> Iterable[Tuple]:
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

    def __init__(self, plan: Plan, shared: Evaluation | None = None) -> None:
        """``shared`` has the relations of a keyed program that are not keyed: read here, never added to."""
        self._plan = plan
        self._all = [Table() for _ in plan.relations]
        self._old = [Table() for _ in plan.relations]
        self._delta = [Table() for _ in plan.relations]
        if shared is None:
            for relation, arguments in plan.facts:
                self.insert(relation, [tuple(evaluate(a, []) for a in arguments)])
        else:
            self._all = [
                own if relation.keyed else other
                for relation, own, other in zip(plan.relations, self._all, shared._all, strict=True)
            ]

    def insert(self, relation: int, rows: Iterable[Tuple]) -> None:
        """Add tuples before the strata run."""
        for row in self._closed(relation, rows):
            self._all[relation].add(row)

    def rows(self, relation: int) -> list[Tuple]:
        """The tuples of a relation, sorted."""
        return sorted(self._all[relation].tuples, key=sort_key)

    def run(self, strata: Sequence[Stratum], wanted: Iterable[int]) -> None:
        """Compute the strata that the ``wanted`` relations depend on, in order, each semi-naively."""
        for stratum in needed(self._plan, strata, wanted):
            new: dict[int, dict[Tuple, None]] = {r: {} for r in stratum.relations}
            for index in stratum.rules:
                self._fire(self._plan.rules[index], new)
            for relation, rows in new.items():
                self.insert(relation, list(rows))
            if stratum.recursive:
                self._iterate(stratum)

    def _iterate(self, stratum: Stratum) -> None:
        relations = stratum.relations
        for r in relations:
            self._old[r] = Table()
            self._delta[r] = self._all[r]
        while any(self._delta[r].tuples for r in relations):
            new: dict[int, dict[Tuple, None]] = {r: {} for r in relations}
            for index in stratum.recursive:
                self._fire(self._plan.rules[index], new)
            for r in relations:
                for row in self._delta[r].tuples:
                    self._old[r].add(row)
                self._delta[r] = Table()
                for row in self._closed(r, new[r]):
                    self._delta[r].add(row)
            for r in relations:
                if self._all[r] is not self._delta[r]:
                    for row in self._delta[r].tuples:
                        self._all[r].add(row)

    def _closed(self, relation: int, rows: Iterable[Tuple]) -> list[Tuple]:
        """The rows that are new, and what makes an eqrel an equivalence again."""
        known = self._all[relation]
        new = dict.fromkeys(row for row in rows if row not in known)
        if not self._plan.relations[relation].eqrel or not new:
            return list(new)
        classes: dict[Value, list[Value]] = {}
        for a, b in [*known.tuples, *new]:
            left, right = classes.setdefault(a, [a]), classes.setdefault(b, [b])
            if left is not right:
                left += right
                for member in right:
                    classes[member] = left
        pairs: dict[Tuple, None] = {}
        for members in classes.values():
            pairs.update(dict.fromkeys((a, b) for a in members for b in members if (a, b) not in known))
        return list(pairs)

    def _fire(self, rule: Rule, new: Mapping[int, dict[Tuple, None]]) -> None:
        known, found = self._all[rule.head], new[rule.head]
        registers: Registers = [None] * rule.registers
        try:
            for _ in self._solve(rule.steps, 0, registers):
                row = tuple(evaluate(argument, registers) for argument in rule.args)
                if row not in known:
                    found[row] = None
        except EngineError as error:
            source = self._plan.sources[rule.source]
            raise EngineError(f"{source.file}:{source.line}: {error}") from None

    def _solve(self, steps: Sequence[Step], at: int, registers: Registers) -> Iterator[None]:
        """Run ``steps`` from ``at`` on; yields once per solution, which then stands in ``registers``."""
        if at == len(steps):
            yield
            return
        step = cast(tuple[Any, ...], steps[at])
        for _ in _STEPS[step[0]](self, step, registers):
            yield from self._solve(steps, at + 1, registers)

    # ---- Steps: each yields once per way to go on -----------------------------------------------

    def _scan(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        _, relation, version, bound, free = step
        tables = {"all": self._all, "delta": self._delta, "old": self._old}[version]
        columns = tuple(column for column, _ in bound)
        key = tuple(evaluate(expression, registers) for _, expression in bound)
        for row in tables[relation].matching(columns, key):
            for column, register in free:
                registers[register] = row[column]
            yield
            if not free:
                return

    def _absent(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        _, relation, bound = step
        columns = tuple(column for column, _ in bound)
        key = tuple(evaluate(expression, registers) for _, expression in bound)
        if not any(True for _ in self._all[relation].matching(columns, key)):
            yield

    def _test(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        _, operator, _, left, right = step
        if _TESTS[operator](evaluate(left, registers), evaluate(right, registers)):
            yield

    def _let(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        _, register, expression = step
        registers[register] = evaluate(expression, registers)
        yield

    def _unpack(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        _, expression, targets = step
        record = evaluate(expression, registers)
        if record is not None:
            for register, value in zip(targets, record, strict=True):
                if register >= 0:
                    registers[register] = value
            yield

    def _range(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        _, register, _, start, end, by = step
        value, end, by = (evaluate(e, registers) for e in (start, end, by))
        if by == 0:
            if value != end:
                registers[register] = value
                yield
            return
        while value < end if by > 0 else value > end:
            registers[register] = value
            yield
            value += by

    def _aggregate(self, step: tuple[Any, ...], registers: Registers) -> Iterator[None]:
        _, register, function, kind, target, steps = step
        values: list[Value] = []
        for _ in self._solve(steps, 0, registers):
            values.append(0 if target is None else evaluate(target, registers))
        if function == "count":
            registers[register] = len(values)
        elif function == "sum":
            registers[register] = wrap(sum(values, 0.0 if kind == "float" else 0), kind)
        elif not values:
            return
        elif function == "mean":
            registers[register] = wrap(sum(values) / len(values), kind)
        else:
            registers[register] = (min if function == "min" else max)(values, key=sort_key)
        yield


def needed(plan: Plan, strata: Sequence[Stratum], wanted: Iterable[int]) -> list[Stratum]:
    """The strata that the ``wanted`` relations depend on, in order."""
    relations = set(wanted)
    found = []
    for stratum in reversed(strata):
        if not relations.isdisjoint(stratum.relations):
            found.append(stratum)
            for index in (*stratum.rules, *stratum.recursive):
                relations.update(_read(plan.rules[index].steps))
    return found[::-1]


def _read(steps: Sequence[Step]) -> Iterator[int]:
    """The relations that steps read."""
    for step in cast(Sequence[tuple[Any, ...]], steps):
        if step[0] in ("scan", "absent"):
            yield step[1]
        elif step[0] == "aggregate":
            yield from _read(step[5])


_STEPS: dict[str, Callable[[Evaluation, tuple[Any, ...], Registers], Iterator[None]]] = {
    "scan": Evaluation._scan,
    "absent": Evaluation._absent,
    "test": Evaluation._test,
    "let": Evaluation._let,
    "unpack": Evaluation._unpack,
    "range": Evaluation._range,
    "aggregate": Evaluation._aggregate,
}

_TESTS: dict[str, Callable[[Value, Value], bool]] = {
    "=": lambda a, b: a is b or a == b,
    "!=": lambda a, b: a is not b and a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "contains": lambda part, text: part in text,
    "match": lambda pattern, text: _pattern(pattern).fullmatch(text) is not None,
}


def _pattern(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        message = f"the pattern of `match` is not a regular expression: {error}: {pattern}"
        raise EngineError(message) from None


# ---- Expressions ------------------------------------------------------------------------------------------


def evaluate(expression: Expression, registers: Registers) -> Value:
    """The value of an expression."""
    e = cast(tuple[Any, ...], expression)
    if e[0] == "reg":
        return registers[e[1]]
    if e[0] == "const":
        return e[2]
    if e[0] == "record":
        return tuple(evaluate(x, registers) for x in e[1:])
    return call(e[1], e[2], [evaluate(x, registers) for x in e[3:]])


def wrap(value: Value, kind: str) -> Value:
    """A result as a word of its type: integers wrap around, there is one zero and one NaN."""
    if kind == "number":
        return (value + (1 << 63) & _MASK) - (1 << 63)
    if kind == "unsigned":
        return value & _MASK
    if kind == "float":
        return math.nan if math.isnan(value) else value + 0.0
    return value


def call(name: str, kind: str, args: Sequence[Value]) -> Value:
    """The result of an intrinsic functor whose arguments have type ``kind``."""
    if name in ("min", "max"):
        return (min if name == "min" else max)(args, key=sort_value)
    if name in _CONVERSIONS:
        return _CONVERSIONS[name](args[0], kind)
    if name == "cat":
        return "".join(args)
    if name == "strlen":
        return len(args[0])
    if name == "substr":
        text, start, length = args
        return text[start : start + length] if 0 <= start <= len(text) and length > 0 else ""
    if kind == "float":
        return wrap(_float(name, args), kind)
    return wrap(_integer(name, kind, args), kind)


def _float(name: str, args: Sequence[float]) -> float:
    if name == "neg":
        return -args[0]
    a, b = args
    if name == "/":
        if b == 0.0:
            return math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a)
        return a / b
    if name == "^":
        try:
            return math.pow(a, b)
        except OverflowError:
            return -math.inf if a < 0 and b % 2 == 1 else math.inf
        except ValueError:
            return math.inf if a == 0.0 else math.nan
    return {"+": a + b, "-": a - b, "*": a * b}[name]


def _integer(name: str, kind: str, args: Sequence[int]) -> int:
    a = args[0]
    if name == "neg":
        return -a
    if name == "bnot":
        return ~a
    if name == "lnot":
        return int(not a)
    b = args[1]
    if name in ("/", "%"):
        if b == 0:
            raise EngineError("division by zero; test the divisor in the rule first")
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if name == "/" else a - b * quotient
    if name == "^":
        if b < 0:
            return 1 if a == 1 else (-1 if b % 2 else 1) if a == -1 else 0
        return pow(a, b, 1 << 64)
    return _OPERATORS[name](a, b, kind)


_OPERATORS: dict[str, Callable[[int, int, str], int]] = {
    "+": lambda a, b, _: a + b,
    "-": lambda a, b, _: a - b,
    "*": lambda a, b, _: a * b,
    "band": lambda a, b, _: a & b,
    "bor": lambda a, b, _: a | b,
    "bxor": lambda a, b, _: a ^ b,
    "bshl": lambda a, b, _: a << (b & 63),
    "bshr": lambda a, b, _: a >> (b & 63),
    "bshru": lambda a, b, _: (a & _MASK) >> (b & 63),
    "land": lambda a, b, _: int(bool(a and b)),
    "lor": lambda a, b, _: int(bool(a or b)),
    "lxor": lambda a, b, _: int(bool(a) != bool(b)),
}


def _to_integer(value: Value, kind: str, result: str) -> int:
    if kind == "symbol":
        number = int(value) if re.fullmatch(r"[+-]?[0-9]+", value) else 1 << 64
        low, high = (-(1 << 63), (1 << 63) - 1) if result == "number" else (0, _MASK)
        if not low <= number <= high:
            raise EngineError(f"a text that is no {result} cannot be converted: {value!r}")
        return number
    if kind == "float":
        low, high = (-(1 << 63), (1 << 63) - 1) if result == "number" else (0, _MASK)
        return 0 if math.isnan(value) else low if value <= low else high if value >= high else int(value)
    return cast(int, wrap(value, result))


def _to_float(value: Value, kind: str) -> float:
    if kind != "symbol":
        return float(value)
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", value):
        raise EngineError(f"a text that is no float cannot be converted: {value!r}")
    return cast(float, wrap(float(value), "float"))


def _to_string(value: Value, kind: str) -> str:
    return f"{value:f}" if kind == "float" else str(value)


def _ord(value: Value, kind: str) -> int:
    if kind == "symbol":
        digest = 0xCBF29CE484222325
        for byte in value.encode():
            digest = (digest ^ byte) * 0x100000001B3 & _MASK
        return cast(int, wrap(digest, "number"))
    return _to_integer(value, kind, "number")


_CONVERSIONS: dict[str, Callable[[Value, str], Value]] = {
    "to_number": lambda value, kind: _to_integer(value, kind, "number"),
    "to_unsigned": lambda value, kind: _to_integer(value, kind, "unsigned"),
    "to_float": _to_float,
    "to_string": _to_string,
    "ord": _ord,
}

# ---- Order ------------------------------------------------------------------------------------------------


def sort_value(value: Value) -> Any:
    """A key that puts values of one type in order: NaN after all floats, nil before all records."""
    if value is None:
        return (0,)
    if isinstance(value, tuple):
        return (1, sort_key(value))
    return (value != value, value) if isinstance(value, float) else value


def sort_key(row: Any) -> Any:
    """A key that puts tuples (or values) of one relation in order."""
    return tuple(map(sort_value, row)) if isinstance(row, tuple) else sort_value(row)
