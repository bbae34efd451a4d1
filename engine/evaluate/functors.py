"""Values and the intrinsic functors: the semantics that all evaluators share.

Numbers. ``number`` and ``unsigned`` wrap around at 64 bits. ``/`` and ``%`` truncate towards zero, as in C; a
zero divisor raises EngineError. ``^`` of integers multiplies as often as the exponent says (wrapping
around); a negative exponent gives 0, except for the bases 1 and -1. Shifts take the low 6 bits of their right
argument; ``bshr`` keeps the sign of a ``number``, ``bshru`` does not. ``land``, ``lor``, ``lxor`` and
``lnot`` give 0 or 1. Floats follow IEEE 754 (x / 0.0 is infinite or NaN), but every NaN is one value. -0.0
and 0.0 are two values that comparisons take for equal.

Symbols are compared by code point. ``strlen`` and ``substr`` count code points (Soufflé: bytes); ``substr``
is empty if its start is negative or beyond the end. It stops at the end; with a negative length it goes up to
the end. ``to_string`` of a float has six decimals, as C's "%f". ``to_number``, ``to_unsigned`` and
``to_float`` of a symbol take decimal digits with a sign; integers may be hexadecimal (0x) or binary (0b),
floats may have a point and an exponent, or be ``inf``, ``infinity`` or ``nan`` in letters of either case.
Anything else raises EngineError. A float becomes an integer by truncation (saturating, NaN is 0); ``as``
keeps the bits of a number. ``ord`` is the value itself as a ``number``, and the ``ordinal`` of a symbol;
equal records have equal numbers. ``match(pattern, text)`` matches the whole text; with an invalid pattern
neither it nor its negation holds.
"""

from __future__ import annotations

import math
import operator
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, cast

from ..language.diagnostics import EngineError
from ..plan.plan import Expression
from .floats import NEGATIVE_ZERO, canonical, equal
from .ordinals import Ordinals, hashed

Value = Any  # int, float, str, or a record: a tuple or None
Registers = list[Value]
Ordinal = Callable[[str], int]

_MASK = (1 << 64) - 1


def evaluate(expression: Expression, registers: Registers, ordinal: Ordinal = hashed) -> Value:
    """The value of an expression; ``ordinal`` gives the numbers of symbols."""
    e: Any = expression
    if e[0] == "reg":
        return registers[e[1]]
    if e[0] == "const":
        return canonical(e[2]) if e[1] == "float" else e[2]
    if e[0] == "record":
        return tuple(evaluate(x, registers, ordinal) for x in e[1:])
    return call(e[1], e[2], [evaluate(x, registers, ordinal) for x in e[3:]], ordinal)


def wrap(value: Value, kind: str) -> Value:
    """A result as a word of its type: integers wrap around, there is one NaN."""
    if kind == "number":
        return (value + (1 << 63) & _MASK) - (1 << 63)
    if kind == "unsigned":
        return value & _MASK
    if kind == "float":
        return canonical(value)
    return value


def added(values: Iterable[Value], kind: str) -> Value:
    """The sum of values of a type, in order. From Python 3.12 on ``sum`` compensates rounding, so it is not
    used."""
    return wrap(reduce(operator.add, values, 0.0 if kind == "float" else 0), kind)


def ranged(value: Value, end: Value, by: Value | None = None) -> Iterator[Value]:
    """The values of ``range``: those before the end. With step 0 it gives its start once, unless that is its
    end; and it ends where a step leads no further, as of a float that is too large for it."""
    if by is None:
        by = type(value)(1 if value <= end else -1)
    while value < end if by > 0 else value > end if by else TESTS["!="](value, end):
        yield value
        if value + by == value:
            return
        value += by


def call(name: str, kind: str, args: Sequence[Value], ordinal: Ordinal = hashed) -> Value:
    """The result of an intrinsic functor whose arguments have type ``kind``."""
    if name in ("min", "max"):
        return (min if name == "min" else max)(args, key=sort_value)
    if name == "ord" and kind == "symbol":
        return ordinal(args[0])
    if name in _CONVERSIONS:
        return _CONVERSIONS[name](args[0], kind)
    if name == "cat":
        return "".join(args)
    if name == "strlen":
        return len(args[0])
    if name == "substr":
        text, start, length = args
        end = start + length if length >= 0 else len(text)
        return text[start:end] if start >= 0 else ""
    if kind == "float":
        return wrap(_float(name, args), kind)
    return wrap(_integer(name, kind, args), kind)


def _float(name: str, args: Sequence[float]) -> float:
    if name == "neg":
        return -args[0]
    a, b = args
    if name == "/":
        if not b:
            sign = math.copysign(1.0, a) * math.copysign(1.0, b)
            return math.nan if not a or math.isnan(a) else math.copysign(math.inf, sign)
        return a / b
    if name == "^":
        try:
            return math.pow(a, b)
        except OverflowError:
            return -math.inf if a < 0 and b % 2 == 1 else math.inf
        except ValueError:
            return math.nan if a else -math.inf if math.copysign(1.0, a) < 0 and b % 2 == 1 else math.inf
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
        number = 1 << 64  # too large: no number
        if match := re.fullmatch(r"([+-]?)(?:0x([0-9a-fA-F]+)|0b([01]+)|([0-9]+))", value):
            digits, base = next((d, b) for d, b in zip(match.groups()[1:], (16, 2, 10), strict=True) if d)
            digits = digits.lstrip("0") or "0"
            if len(digits) <= 64:
                number = int(match[1] + digits, base)
        low, high = (-(1 << 63), (1 << 63) - 1) if result == "number" else (0, _MASK)
        if not low <= number <= high:
            raise EngineError(f"a text that is no {result} cannot be converted: {value!r}")
        return number
    if kind == "float":
        low, high = (-(1 << 63), (1 << 63) - 1) if result == "number" else (0, _MASK)
        return 0 if math.isnan(value) else low if value <= low else high if value >= high else int(value)
    return cast(int, wrap(value, result))


_FLOAT = re.compile(
    r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE
)


def _to_float(value: Value, kind: str) -> float:
    if kind != "symbol":
        return float(value)
    if not _FLOAT.fullmatch(value):
        raise EngineError(f"a text that is no float cannot be converted: {value!r}")
    return cast(float, wrap(float(value), "float"))


def _to_string(value: Value, kind: str) -> str:
    return f"{value:f}" if kind == "float" else str(value)


def _ord(value: Value, kind: str) -> int:
    if kind == "record":
        return hashed(repr(value))
    return _to_integer(value, kind, "number")


def _as(value: Value, kind: str, result: str) -> Value:
    """The number of a type that has the bits of a number of another."""
    bits = struct.pack("<d", value) if kind == "float" else struct.pack("<Q", value & _MASK)
    return wrap(struct.unpack("<d" if result == "float" else "<Q", bits)[0], result)


_CONVERSIONS: dict[str, Callable[[Value, str], Value]] = {
    "as_number": lambda value, kind: _as(value, kind, "number"),
    "as_unsigned": lambda value, kind: _as(value, kind, "unsigned"),
    "as_float": lambda value, kind: _as(value, kind, "float"),
    "to_number": lambda value, kind: _to_integer(value, kind, "number"),
    "to_unsigned": lambda value, kind: _to_integer(value, kind, "unsigned"),
    "to_float": _to_float,
    "to_string": _to_string,
    "ord": _ord,
}

# ---- Comparisons ------------------------------------------------------------------------------------------

TESTS: dict[str, Callable[[Value, Value], bool]] = {
    "=": equal,
    "!=": lambda a, b: not equal(a, b),
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "contains": lambda part, text: part in text,
    "!contains": lambda part, text: part not in text,
    "match": lambda pattern, text: _matches(pattern, text) is True,
    "!match": lambda pattern, text: _matches(pattern, text) is False,
}


# Named classes in brackets, which Python's expressions do not have.
_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_BRACKETS = re.compile(r"\[:(" + "|".join(_CLASSES) + r"):\]")


def is_pattern(pattern: str) -> bool:
    """Whether a text is a regular expression."""
    return _pattern(pattern) is not None


def _matches(pattern: str, text: str) -> bool | None:
    """Whether a pattern matches the whole text; None where it is no regular expression."""
    compiled = _pattern(pattern)
    return None if compiled is None else compiled.fullmatch(text) is not None


def _pattern(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(_BRACKETS.sub(lambda match: _CLASSES[match[1]], pattern))
    except (re.error, OverflowError, RecursionError):
        return None


# ---- Order ------------------------------------------------------------------------------------------------


def sort_value(value: Value) -> Any:
    """A key that puts values of one type in order: -0.0 before 0.0, NaN after all floats, nil before all
    records."""
    if value is None:
        return (0,)
    if isinstance(value, tuple):
        key: list[Any] = [1]
        for part in value:
            key.append(sort_value(part))
        return tuple(key)
    return (value != value, float(value), value is not NEGATIVE_ZERO) if isinstance(value, float) else value


def sort_key(row: Any) -> Any:
    """A key that puts tuples (or values) of one relation in order."""
    return tuple(map(sort_value, row)) if isinstance(row, tuple) else sort_value(row)


def choice_key(value: Value, ordinals: Ordinals) -> Any:
    """A key for the order of choices: symbols in order of appearance, then others by their text."""
    if isinstance(value, str):
        return (value not in ordinals, ordinals.get(value, 0), value)
    if isinstance(value, tuple):
        return (1, tuple(choice_key(part, ordinals) for part in value))
    return sort_value(value)
