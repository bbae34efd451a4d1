"""The tensors that must move between devices, as JSON and as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...markup import element
from ...program.ids import Item
from ...program.mlir.origins import at
from ...runs.choice import ProgramChoice
from ...runs.records.record import Annotation
from .alike import groups, left_out, others
from .answers import Answers
from .text import dims_text, given_text, wrapped

_MOST_SHOWN = 6


@dataclass(frozen=True)
class Conflict:
    """A tensor that must move for a slot of an op.

    It has its sharding before and after (a text per dimension), the axes over which it is partial before,
    and the collectives. If both shardings are equal, the op takes some elements from other devices, as an
    op with a sliding window does. Both are empty for scalars.

    ``bytes`` are those that a device sends in all, in ``executions`` executions; None inside a loop of
    unknown trip count, of which one iteration is counted. ``origin`` is the annotation that the tensor's
    axes come from, and ``against`` the one that the op's axes come from; None if there is no axis.
    ``number`` is the tensor's and ``item`` the op's; -1 if it was not in the program that was read.
    ``numbers`` are the numbers of the collectives in the program.
    """

    op: str
    where: str
    stack: str
    tensor: str
    type: str
    slot: str
    has: tuple[str, ...]
    needs: tuple[str, ...]
    partial: str
    collective: str
    bytes: int
    executions: int | None
    number: int
    item: Item
    numbers: tuple[int, ...]
    # The annotations of ``origin`` and ``against``: they are looked for when they are asked for.
    meeting: Callable[[], tuple[Annotation | None, Annotation | None]] = field(repr=False, compare=False)

    @property
    def origin(self) -> Annotation | None:
        """The annotation that the tensor's axes come from."""
        return self.met[0]

    @property
    def against(self) -> Annotation | None:
        """The annotation that the op's axes come from."""
        return self.met[1]

    @cached_property
    def met(self) -> tuple[Annotation | None, Annotation | None]:
        """``origin`` and ``against``."""
        return self.meeting()

    @property
    def given(self) -> tuple[Annotation, ...]:
        """The annotations that meet."""
        return tuple(dict.fromkeys(given for given in (self.origin, self.against) if given))

    def as_json(self) -> dict[str, Any]:
        """The conflict as JSON has it."""
        names = (
            "op",
            "where",
            "stack",
            "tensor",
            "type",
            "slot",
            "partial",
            "collective",
            "bytes",
            "executions",
        )
        entry = {name: getattr(self, name) for name in names}
        entry |= {"numbers": list(self.numbers), "has": list(self.has), "needs": list(self.needs)}
        return entry | {name: str(getattr(self, name) or "") for name in ("origin", "against")}


class Conflicts(Answers[Conflict]):
    """The tensors that must move in a program, most bytes first."""

    def __new__(cls, each: Iterable[Conflict], program: ProgramChoice) -> Conflicts:
        """The conflicts in a program."""
        conflicts = super().__new__(cls, each)
        conflicts.program = program
        return conflicts

    program: ProgramChoice

    def __repr__(self) -> str:
        return conflicts_text(self, self.program)

    def _repr_html_(self) -> str:
        return element("pre", repr(self))


def conflicts_text(
    conflicts: Sequence[Conflict], program: ProgramChoice, *, full: bool = False, most: int | None = None
) -> str:
    """The tensors that must move in a program, most bytes first.

    Those that are alike share an entry, and six entries are shown; if ``full``, each tensor has one, and all
    are. ``most`` is another number of entries.
    """
    lines = [program.line, must_move(conflicts)]
    if full:
        shown = [[conflict] for conflict in conflicts[:most]]
    else:
        shown = _alike(conflicts, _MOST_SHOWN if most is None else most)
    for first, *alike in shown:
        lines += _conflict(first, 1 + len(alike))
        if alike:
            lines += wrapped("      ", f"so do {others([conflict.tensor for conflict in alike])}")
    if left := len(conflicts) - sum(map(len, shown)):
        lines.append(f"  {left_out(left, 'tensor')}")
    return "\n".join(lines)


def _alike(conflicts: Sequence[Conflict], most: int) -> list[list[Conflict]]:
    """The groups of conflicts that are alike with most bytes in all, the first ones first.

    The annotations, which take most of the time, are read only where they matter: a group of equal texts is
    part of one whose texts are equal without the annotations.
    """
    order = {id(conflict): number for number, conflict in enumerate(conflicts)}

    def rank(same: list[Conflict]) -> tuple[int, int]:
        return -same[0].bytes * len(same), order[id(same[0])]

    alike = list[list[Conflict]]()
    for same in sorted(groups(conflicts, lambda c: "\n".join(_moved(c, 1))), key=rank):
        if len(alike) >= most and rank(alike[most - 1]) < rank(same):
            break
        alike = sorted([*alike, *groups(same, lambda c: "\n".join(_conflict(c, 1)))], key=rank)
    return alike[:most]


def must_move(conflicts: Sequence[Conflict]) -> str:
    """How many tensors must move, and their bytes."""
    total = sum(conflict.bytes for conflict in conflicts)
    tensors = f"{len(conflicts)} tensor{'' if len(conflicts) == 1 else 's'}"
    return f"{tensors} must move, {total:,} bytes to each device"


def _conflict(conflict: Conflict, times: int) -> list[str]:
    lines = _moved(conflict, times)
    return lines + (wrapped("      ", given_text(conflict.given)) if conflict.given else [])


def _moved(conflict: Conflict, times: int) -> list[str]:
    """The lines without the annotations."""
    size = f"{times} times {conflict.bytes:,} bytes" if times > 1 else f"{conflict.bytes:,} bytes"
    op = f"{conflict.op}{at(conflict.where, conflict.stack)}, {conflict.slot}"
    if conflict.executions is None or conflict.executions > 1:
        turns = "each turn" if conflict.executions is None else f"in {conflict.executions:,} turns"
        size += f" {turns}"
    return [
        f"  {size}, {conflict.collective}: {conflict.tensor} : {conflict.type}",
        f"      {f'{moves_text(conflict)} for {op}'.strip()}",
    ]


def moves_text(conflict: Conflict) -> str:
    """The layouts of the tensor before and after: ``[{a}, {}] -> [{}, {}]``.

    For a scalar it is the axes over which it is partial, if it is.
    """
    partial = f" partial over {conflict.partial}" if conflict.partial else ""
    if not (conflict.has or conflict.needs):
        return partial.strip()
    if conflict.has == conflict.needs and not partial:
        return dims_text(conflict.has)
    return f"{dims_text(conflict.has)}{partial} -> {dims_text(conflict.needs)}"
