"""The prices of what devices do, all in bytes: those that a device could send in the same time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ...program.classes import Facts
from ...program.elements import bits_of

Groups = Sequence[Sequence[int]]  # of devices


@dataclass(frozen=True)
class Price:
    """The price of a collective: of each byte that a device sends, and of its steps, whatever they carry."""

    byte: float = 1.0
    once: float = 0.0


PLAIN = Price()


def _usual(element: str, signature: Facts) -> float:
    return 500.0 if bits_of(element) <= 16 else 200.0


@dataclass(frozen=True)
class Prices:
    """Prices without a machine: a byte is a byte, and work in excess of what an op would have if every tensor
    stayed as it is counts as that of a usual accelerator: as its compiler fuses ops, it reads and writes for
    them 30 bytes in the time in which it sends one to a neighbour, and 250 where it sends it over a network.
    Where values may live elsewhere, products count in full, and each collective costs as much as 128 bytes
    besides, or a part of what one sends in the mean (``improving.py``): far less than on any machine, but of
    two choices that move about as much the one with fewer collectives is better. An op takes at least as long
    as 256 bytes, so that small ones are computed on every device rather than sent for.

    With a machine (``cost/exchange.py``) all work counts, and ``collective`` says the price of a kind of
    collective over groups of so many devices along axes, and which these devices are. Of collectives of the
    kinds that are ``combined`` one is made where neither needs what the other gives. Kinds are called as in
    HLO.
    """

    # And additions for one byte, by the type of elements and what rules are told of an op:
    multiplications: Callable[[str, Facts], float] = _usual
    touched: float = 128.0  # bytes of memory, of those that ops take and give, for one byte
    once: float = 128.0
    begins: float = 256.0  # what an op takes at least, however small it is
    all_work: bool = False
    collective: Callable[[str, int, tuple[str, ...], Groups], Price] | None = None
    combined: Collection[str] = ()
