"""The prices of work and communication, in bytes that a device could send in the same time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NewType, Protocol

from jaxlib.mlir import ir

from ...importers.listing import Listing
from ...program.elements import bits_of
from ..facts.knowledge import Knowledge, RuleReader
from ..layouts import Shape

TaskId = NewType("TaskId", int)
NO_TASK = TaskId(-1)  # of ops that only pass a value on
LocalShapes = tuple[Shape | None, ...]  # of an op's slots; None: no tensors
Groups = Sequence[Sequence[int]]  # of devices


@dataclass(frozen=True)
class Price:
    """The price of a collective: for each byte that a device sends, and for its steps, whatever they
    carry."""

    byte: float = 1.0
    once: float = 0.0


PLAIN = Price()


class Tasks(Protocol):
    """The time of ops on a machine. Its compiler fuses ops, so each has a task: its part of the work of
    all."""

    def of(self, module: ir.Module, listing: Listing, reader: RuleReader) -> Callable[[int], TaskId]:
        """The tasks of the ops of a module, by number."""
        ...

    def price(self, task: TaskId, knowledge: Knowledge, shapes: LocalShapes, partial: bool) -> float:
        """The price of a task, in bytes, if the op's slots have these local shapes, and devices ``partial``
        results."""
        ...


def _usual(knowledge: Knowledge) -> float:
    return 500.0 if bits_of(knowledge.element) <= 16 else 200.0


@dataclass(frozen=True)
class Prices:
    """Prices without a machine: a byte costs a byte. Redundant work, beyond that of the op with all layouts
    kept, costs as on a usual accelerator: because its compiler fuses ops, it moves 30 bytes of their memory
    traffic in the time of one byte to a neighbour, or 250 over a network. If layouts may be chosen, products
    count in full. Each collective then costs 128 bytes besides, or a part of the mean bytes of one
    (``improving.py``). That is far less than on any machine, but prefers fewer collectives among choices that
    send about the same. An op costs at least 256 bytes, so that small ones are replicated instead of sent.

    With a machine (``cost/exchange.py``) all work counts. Where all ops are chosen together, its ``tasks``
    say how long each takes. ``collective`` gives the price of a kind of
    collective over groups of this many devices along axes, with the devices. Independent collectives of the
    kinds in ``combined`` are combined. Kinds have their HLO names.
    """

    multiplications: Callable[[Knowledge], float] = _usual  # multiply-adds of an op for one byte
    touched: float = 128.0  # bytes of memory traffic of ops for one byte
    once: float = 128.0
    begins: float = 256.0  # the least cost of an op
    all_work: bool = False
    collective: Callable[[str, int, tuple[str, ...], Groups], Price] | None = None
    combined: Collection[str] = ()
    tasks: Tasks | None = None
