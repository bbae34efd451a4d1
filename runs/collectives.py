"""The collectives of a partitioned program, with their purposes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from ..program.mlir.origins import at, location_text, origin

if TYPE_CHECKING:
    from ..partition.device_program import DeviceProgram
    from ..program.ids import Item
    from .records.live import Live
    from .records.record import Op


class Causes(Sequence[str]):
    """The annotations that the axes of collectives come from, each once, as text.

    They are found when they are first read, since that takes proofs. A copy of them is a tuple.
    """

    def __init__(self, *finders: Callable[[], Iterable[str]]) -> None:
        self._finders = finders

    @classmethod
    def joined(cls, causes: Sequence[str], others: Sequence[str]) -> Sequence[str]:
        """Both, the first ones first."""
        parts = [each for each in (causes, others) if isinstance(each, cls) or each]
        return cls(*(finder for each in parts for finder in cls._finders_of(each))) if parts else ()

    @classmethod
    def _finders_of(cls, causes: Sequence[str]) -> tuple[Callable[[], Iterable[str]], ...]:
        return causes._finders if isinstance(causes, cls) else (lambda: causes,)

    @cached_property
    def _all(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cause for find in self._finders for cause in find()))

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        return self._all == (other._all if isinstance(other, Causes) else other)

    def __hash__(self) -> int:
        return hash(self._all)

    def __repr__(self) -> str:
        return repr(self._all)

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._all,)


@dataclass(frozen=True)
class Collective:
    """A collective of the program that each device runs.

    ``number`` counts them in the order of the program. ``kind`` is a name such as "all-gather", ``axes`` are
    the axes that it runs over ("model", "x:(1)2"), and ``group`` is the number of devices in a group.
    ``bytes`` are sent by a device in one execution, in the ring model. ``executions`` counts loops and calls;
    it is None inside a loop of unknown trip count. ``repeats`` is the number of executions if such loops have
    one iteration.

    It serves an ``op`` of the program: a ``slot`` of it ("operand 0", "result"), which holds ``value``, at
    ``where`` in the user's source, with the name ``stack`` there. Merged permutations serve ``also`` others
    ("%1 for operand 1 of stablehlo.add at f.mlir:7"). ``causes`` are the annotations that the axes come from.
    """

    number: int
    kind: str
    axes: tuple[str, ...]
    group: int
    bytes: int
    executions: int | None
    op: str
    slot: str
    value: str
    where: str
    causes: Sequence[str] = ()
    also: tuple[str, ...] = ()
    repeats: int = 1
    stack: str = ""

    @property
    def total(self) -> int:
        """The bytes of all executions. Loops of unknown trip count are counted once."""
        return self.bytes * self.repeats


def collectives(names: OpNames, program: DeviceProgram) -> tuple[Collective, ...]:
    """The collectives of a partitioned run, in order."""
    listed = []
    for number, moved in enumerate(program.movements):
        op, slot = names.of(moved.purpose)
        listed.append(
            Collective(
                number,
                moved.kind.replace("_", "-"),
                program.axes.names(moved.pieces),
                moved.group,
                moved.bytes,
                moved.executions,
                op.name,
                op.roles[slot],
                op.slots[slot],
                op.where,
                also=tuple(map(names.served, moved.purposes[1:])),
                repeats=moved.repeats,
                stack=op.stack,
            )
        )
    return tuple(listed)


class OpNames:
    """The ops of an annotated module as the program that was read has them."""

    def __init__(self, record: Live) -> None:
        self._record, self._items = record, record.run.items

    def item(self, purpose: Any) -> Item | None:
        """The op that a collective serves, where it was in the program as it was read."""
        return self._items.get(purpose.op.operation)

    def op(self, purpose: Any) -> Op | None:
        """The op that a collective serves, as ``item``."""
        return self.as_read(purpose.op.operation)

    def as_read(self, op: object) -> Op | None:
        """An op as it was in the program that was read, or None where it was not there."""
        item = self._items.get(op)
        return None if item is None else self._record.op(item)

    def result(self, value: Any) -> int:
        """The number of the tensor that is an op's result; -1 if the program that was read has no such op."""
        maker = None if value is None else self._maker(value)
        return -1 if maker is None else maker.values[len(value.owner.operands) + value.result_number]

    def of(self, purpose: Any) -> tuple[Op, int]:
        """The op that a collective serves, and the slot."""
        op = self.op(purpose)
        if op is None:
            return self._added(purpose), 0
        return op, min(purpose.slot, len(op.roles) - 1)

    def served(self, purpose: object) -> str:
        """The value, slot and op that a collective serves."""
        op, slot = self.of(purpose)
        place = at(op.where, op.stack)
        return f"{op.slots[slot] or 'a value'} for {op.roles[slot]} of {op.name}{place}"

    def _added(self, purpose: Any) -> Op:
        """An op that was written with the shardings, such as a reshard at a call."""
        from .records.record import Op

        maker = None if purpose.value is None else self._maker(purpose.value)
        name = "" if maker is None else maker.slots[-1]
        where, stack = origin(location_text(purpose.op)).place
        result = purpose.slot - len(purpose.op.operands)
        role = f"operand {purpose.slot}" if result < 0 else "result"
        if result >= 0 and len(purpose.op.results) > 1:
            role = f"result {result}"
        where = self._record.run.source.place(where)
        return Op(purpose.op.operation.name, where, (), (name,), (role,), stack)

    def _maker(self, value: Any) -> Op | None:
        owner = value.owner
        return self.as_read(owner.operation) if hasattr(owner, "operation") else None
