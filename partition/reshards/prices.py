"""The prices of work and communication, in bytes that a device could send in the same time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ...program.classes import Facts
from ...program.elements import bits_of

Groups = Sequence[Sequence[int]]  # of devices


@dataclass(frozen=True)
class Price:
    """The price of a collective: for each byte that a device sends, and for its steps, whatever they
    carry."""

    byte: float = 1.0
    once: float = 0.0


PLAIN = Price()


def _usual(element: str, signature: Facts) -> float:
    return 500.0 if bits_of(element) <= 16 else 200.0


@dataclass(frozen=True)
class Prices:
    """Prices without a machine: a byte costs a byte. Redundant work, beyond that of the op with all layouts
    kept, costs as on a usual accelerator: because its compiler fuses ops, it moves 30 bytes of their memory
    traffic in the time of one byte to a neighbour, or 250 over a network. If layouts may be chosen, products
    count in full. Each collective then costs 128 bytes besides, or a part of the mean bytes of one
    (``improving.py``). That is far less than on any machine, but prefers fewer collectives among choices that
    send about the same. An op costs at least 256 bytes, so that small ones are replicated instead of sent.

    With a machine (``cost/exchange.py``) all work counts. ``collective`` gives the price of a kind of
    collective over groups of this many devices along axes, with the devices. Independent collectives of the
    kinds in ``combined`` are combined. Kinds have their HLO names.
    """

    # Multiply-adds for one byte, by the element type and the facts about an op:
    multiplications: Callable[[str, Facts], float] = _usual
    touched: float = 128.0  # bytes of memory traffic of ops for one byte
    product_touched: float | None = None  # ... of products, which are not fused with their operands
    once: float = 128.0
    begins: float = 256.0  # the least cost of an op
    all_work: bool = False
    collective: Callable[[str, int, tuple[str, ...], Groups], Price] | None = None
    combined: Collection[str] = ()
