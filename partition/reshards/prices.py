"""The prices of what devices do, all in bytes: those that a device could send in the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Groups = Sequence[Sequence[int]]  # of devices


@dataclass(frozen=True)
class Price:
    """The price of a collective: of each byte that a device sends, and of its steps, whatever they carry."""

    byte: float = 1.0
    once: float = 0.0


PLAIN = Price()


def _usual(element: str) -> float:
    return 200.0


@dataclass(frozen=True)
class Prices:
    """Prices without a machine: a byte is a byte, and work in excess of what an op would have if every tensor
    stayed as it is counts as that of a usual accelerator. Where values may live elsewhere, products count in
    full, and each collective costs as much as 128 bytes besides: far less than on any machine, but of two
    choices that move about as much the one with fewer collectives is better.

    With a machine (``cost/pricing.py``) all work counts, and ``collective`` says the price of a kind of
    collective over groups of so many devices along axes, and which these devices are.
    """

    multiplications: Callable[[str], float] = _usual  # and additions for one byte, by the type of elements
    touched: float = 8.0  # bytes of memory for one byte
    once: float = 128.0
    all_work: bool = False
    collective: Callable[[str, int, tuple[str, ...], Groups], Price] | None = None
