"""Floats as tuples have them: every NaN is one value, and -0.0 is another value than 0.0, as in Soufflé's
interpreter. To comparisons of rules the two zeros are equal, as IEEE 754 says."""

from __future__ import annotations

import math
from typing import Any


class _NegativeZero(float):
    """-0.0 as a member of sets, where Python takes it for 0.0. There is one such object."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return other is self

    def __ne__(self, other: object) -> bool:
        return other is not self

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> str:
        return "NEGATIVE_ZERO"


NEGATIVE_ZERO = _NegativeZero(-0.0)


def canonical(value: float) -> float:
    """The canonical object for NaN and for -0.0; other floats are unchanged."""
    if value != value:
        return math.nan
    return value if float.__bool__(value) or math.copysign(1.0, value) > 0 else NEGATIVE_ZERO


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A tuple with zeros as Python has them."""
    if not any(value is NEGATIVE_ZERO or type(value) is tuple for value in row):
        return row
    values: list[Any] = []
    for value in row:
        values.append(plain(value) if type(value) is tuple else -0.0 if value is NEGATIVE_ZERO else value)
    return tuple(values)


def equal(a: object, b: object) -> bool:
    """Whether two values are equal to a rule."""
    if a is b or a == b:
        return True
    return isinstance(a, float) and isinstance(b, float) and float.__eq__(a, b)
