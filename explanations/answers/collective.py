"""The answer to why a partitioned program has a collective, as JSON and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...cost.beside import Beside
from ...program.mlir.origins import at
from ...runs.choice import ProgramChoice
from ...runs.collectives import Collective
from ...runs.table import time_text
from .text import dims_text, wrapped
from .why import Explanation, why_text

_CAUSES = 6  # causes, and ops at which partial sums begin
_DOES = {
    "all-gather": "puts the parts of {value} together",
    "all-reduce": "combines the partial values of {value}",
    "reduce-scatter": "combines the partial values of {value}, each device a part",
    "all-to-all": "splits {value} along another dimension",
    "collective-permute": "gives each device the part of {value} that another one has",
}
_OF_PARTS = {  # sent by an op itself
    "all-gather": "gathers the results of all parts for {value}",
    "all-reduce": "sends {value} from one device to all",
    "collective-permute": "fetches the rows of {value} that a device needs from other parts",
}


@dataclass(frozen=True)
class ComparedWay:
    """A way to compute the op.

    It has its factors with the axes that they are computed on, and the bytes that a device would send,
    redundant work included. If it was not taken, the sentence and place of the rule that says why. Both are
    empty if it was ``taken``, and if it alone would cost no more than the way that was taken, which costs
    least with all ops around it.
    """

    factors: tuple[tuple[str, str], ...]
    bytes: int
    taken: bool
    lost: str
    rule: str


@dataclass(frozen=True)
class Because:
    """A sentence of the rules about a factor of the op, and the place of the rule."""

    factor: str
    axes: str
    sentence: str
    rule: str


@dataclass(frozen=True)
class Begun:
    """An op whose partial sums other ops pass on to a collective.

    It has its name, its first result, and where it is in the user's source, with the name stack there.
    """

    op: str
    value: str
    where: str
    stack: str


@dataclass(frozen=True)
class ChosenHome:
    """A tensor whose sharding differs from propagation's, because that costs least with all ops around it.

    It has the sharding (a text per dimension, and the axes over which it is a partial sum), and
    propagation's.
    """

    value: str
    dims: tuple[str, ...]
    partial: str
    propagated: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Moved:
    """Why there is a collective.

    It has the layout of the tensor before and after: a text per dimension, and the axes over which it is
    partial. ``steps`` are the numbers of the collectives in between, in order. ``begun`` is where the partial
    sums begin, if ops pass them on. ``chosen`` are tensors at the op whose sharding differs from
    propagation's. ``maps`` has the factors of the dimensions of the op, as ``([i, k], [k, j])->([i, j])``; it
    is empty if no way to compute it was chosen. Also how the op is computed, where the axes come from, and
    the times if the collective overlaps with products. ``written``: it is in the program that was read, in a
    manual computation. ``inside``: it is in the computation that a Python function of the user gives each
    device for the op. ``program`` is the chosen one. If it has a topology, the bytes of ways are those that a
    device could send there in the time of the way.
    """

    program: ProgramChoice
    collective: Collective
    before: tuple[str, ...]
    after: tuple[str, ...]
    partial: str
    steps: tuple[int, ...]
    begun: tuple[Begun, ...]
    chosen: tuple[ChosenHome, ...]
    written: bool
    inside: bool
    maps: str
    ways: tuple[ComparedWay, ...]
    because: tuple[Because, ...]
    causes: tuple[Explanation, ...]
    beside: Beside | None = None

    def __str__(self) -> str:
        return moved_text(self)

    def as_json(self) -> dict[str, Any]:
        """The explanation as JSON has it."""
        entry: dict[str, Any] = {
            "program": str(self.program),
            "collective": asdict(self.collective),
            "partial": self.partial,
        }
        entry |= {"before": list(self.before), "after": list(self.after), "steps": list(self.steps)}
        entry["begun"] = [asdict(each) for each in self.begun]
        entry["chosen"] = [asdict(each) for each in self.chosen]
        entry |= {"topology": self.program.topology, "written": self.written, "inside": self.inside}
        entry["maps"] = self.maps
        entry["ways"] = [asdict(way) for way in self.ways]
        entry["because"] = [asdict(each) for each in self.because]
        entry["causes"] = [cause.as_json() for cause in self.causes]
        entry["beside"] = asdict(self.beside) if self.beside else None
        return entry


def moved_text(moved: Moved, *, full: bool = False) -> str:
    """The collective, the op that it serves, how that is computed, and where the axes come from."""
    sent = moved.collective
    over = f" over {', '.join(f'{chr(34)}{axis}{chr(34)}' for axis in sent.axes)}" if sent.axes else ""
    times = _times(sent.repeats)
    if sent.executions is None:
        times += " in each iteration of a loop of unknown trip count"
    lines = [
        moved.program.line,
        f"{sent.kind} {sent.number}{over}: {sent.bytes:,} bytes from each of {sent.group} devices, {times}",
    ]
    reshard = bool(moved.before or moved.after or moved.partial or not moved.ways)
    does = (_DOES if reshard else _OF_PARTS)[sent.kind].format(value=sent.value or "a value")
    end = ", in the program as it was read" if moved.written else ""
    end += ", as its partition function says" if moved.inside else ""
    lines += wrapped(
        "  ",
        f"it {does} for {sent.slot} of {sent.op}{at(sent.where, sent.stack)}{end}",
    )
    for served in sent.also:
        lines += wrapped("  ", f"at once, other devices send of {served}")
    if moved.before or moved.partial:
        partial = f', partial over "{moved.partial}"' if moved.partial else ""
        lines.append(f"    before: {dims_text(moved.before)}{partial}")
        lines.append(f"    after:  {dims_text(moved.after)}")
    if len(moved.steps) > 1:
        steps = ", ".join(map(str, moved.steps))
        lines.append(f"    in {len(moved.steps)} steps: collectives {steps}")
    lines += _begun(moved.begun, full=full)
    for each in moved.chosen:
        partial = f", partial sums over {each.partial}" if each.partial else ""
        sharded = f"{dims_text(each.dims)}{partial}, and not {dims_text(each.propagated)} as propagation says"
        lines += wrapped("  ", f"{each.value} is sharded {sharded}: with all ops around it that costs less")
    if beside := moved.beside:
        lines += wrapped("  ", f"{beside.sentence} [rules/cost/beside.dl]")
        apart, both = time_text(beside.apart), time_text(beside.beside)
        products = "1 product" if beside.products == 1 else f"{beside.products} products"
        lines.append(f"    {beside.devices} parts, beside {products}: {both} in place of {apart}")
    if moved.maps:
        parts = "in parts:" if moved.because else "whole"
        lines += wrapped("  ", f"{sent.op} {moved.maps} is computed {parts}")
        for because in moved.because:
            lines += _because(because)
    if len(moved.ways) > 1:
        topology = moved.program.topology
        sends = "a device sends" if topology is None else f"take as long to send on {topology}"
        heading = f"ways to compute it, with the bytes that {sends}, work in excess counted as bytes"
        if not all(way.taken or way.lost for way in moved.ways):
            heading += "; the one that is taken costs least with all ops around it"
        lines += wrapped("  ", f"{heading}:")
        lines += [line for way in moved.ways for line in _way(way)]
    causes = moved.causes if full else moved.causes[:_CAUSES]
    for cause in causes:
        lines += [f"  {line}" for line in why_text(cause, full=full).splitlines()]
    if left := len(moved.causes) - len(causes):
        lines.append(f"  ... {left} more tensors with these axes (--full shows all)")
    return "\n".join(lines)


def _begun(begun: Sequence[Begun], *, full: bool) -> list[str]:
    """Where partial sums begin."""
    if not begun:
        return []
    shown = begun if full else begun[:_CAUSES]
    each = [f"{b.value} by {b.op}{at(b.where, b.stack)}" for b in shown]
    if left := len(begun) - len(shown):
        each.append(f"{left} more (--full shows all)")
    return wrapped("  ", f"the partial sums begin as {', '.join(each)}, and are handed on")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _because(because: Because) -> list[str]:
    lines = [f'    factor {because.factor} on "{because.axes}"']
    return lines + wrapped("        ", f"{because.sentence} [{because.rule}]") if because.sentence else lines


def _way(way: ComparedWay) -> list[str]:
    factors = ", ".join(f'{factor} on "{axes}"' for factor, axes in way.factors) or "whole"
    taken = "  <- taken" if way.taken else ""
    return [f"    {way.bytes:12,}  {factors}{taken}"]
