"""Limits: how much an evaluation may take."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from ..language.diagnostics import EngineError

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_PATIENCE = 1 << 10  # tuples between two looks at the clock
_BUSIEST = 3  # rules that an error names


@dataclass(frozen=True)
class Limits:
    """The resources that an evaluation may use; None: unlimited. In a keyed program, limits are per key.

    ``tuples`` counts derived tuples. ``memory`` is in bytes, approximate, and includes facts. ``seconds`` are
    wall-clock time. ``threads`` is the number of threads for a rule that looks at many tuples; the answer
    does not depend on it.
    """

    tuples: int | None = None
    memory: int | None = None
    seconds: float | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            fits = value is None or (isinstance(value, int | float) and value >= 0)
            if fits and value is not None and name != "seconds":
                fits = isinstance(value, int) and value < 1 << 63
            if not fits:
                raise EngineError(f"the limit {name} is {value!r}; expected a number from 0 on, or None")

    def changed(self, text: str) -> Limits:
        """These limits, changed by ``text``, as in "tuples=1000000,memory=2G,seconds=10".

        "none" lifts a limit. Memory is in bytes. Raises EngineError for a text that is not a list of limits.
        """
        amounts: dict[str, Any] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = (side.strip().lower() for side in part.partition("="))
            number = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([kmgt]?)b?", value)
            if name not in vars(self) or not (number or value == "none"):
                raise EngineError(
                    f"cannot read the limit {part!r}; as in tuples=1000000,memory=2G,seconds=10"
                )
            amount = None if number is None else float(number[1]) * _UNITS[number[2]]
            amounts[name] = amount if name == "seconds" or amount is None else int(amount)
        return replace(self, **amounts)


UNLIMITED = Limits()


class LimitError(EngineError):
    """A limit was reached."""


class Budget:
    """The resources that the reference evaluator has used so far.

    Memory is estimated from the tuples that are made.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._deadline = None if limits.seconds is None else perf_counter() + limits.seconds
        self._patience = _PATIENCE
        self._tuples = self._bytes = 0
        self._made: Counter[int] = Counter()  # by source

    def look(self) -> None:
        """Count a tuple that is looked at."""
        self._patience -= 1
        if not self._patience:
            self._patience = _PATIENCE
            if self._deadline is not None and perf_counter() >= self._deadline:
                seconds = f"{self._limits.seconds:g} seconds"
                raise LimitError(f"more than {seconds}; bound the recursion, or raise the limit")

    def derive(self, row: tuple[Any, ...], source: int | None = None) -> None:
        """Count a tuple that is made, by a rule of this source."""
        self._tuples += 1
        if source is not None:
            self._made[source] += 1
        tuples, memory = self._limits.tuples, self._limits.memory
        if tuples is not None and self._tuples > tuples:
            raise LimitError(f"more than {tuples} tuples; bound the recursion, or raise the limit")
        if memory is not None:
            self._bytes += sys.getsizeof(row) + sum(map(sys.getsizeof, row))
            if self._bytes > memory:
                size = f"{-(-memory // (1 << 20))} MiB"
                raise LimitError(f"more than {size} of memory; bound the recursion, or raise the limit")

    def busiest(self) -> Iterable[tuple[int, int]]:
        """The sources whose rules made the most tuples, and how many."""
        most = sorted(self._made.items(), key=lambda pair: (-pair[1], pair[0]))[:_BUSIEST]
        return [(source, count) for source, count in most if count >= self._tuples // 100]
