"""What is done to a device program once it is written: all passes, in their order.

A pass is a function that changes a draft; the first sentence of its docstring says what it does. The lists at
the end are the order, for whoever asks: first what decides how much a program sends (``COUNTED``), then what
makes of it the program that is handed out (``FINISHED``), and last what is written for those who print or
compile it (``COMBINED``, ``CPU``, ``TPU``, ``OTHERS``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxlib.mlir import ir

from ...program.mlir.modules import is_used, operations_in, ops_in
from ...rulebook.traits import OpTraits
from ..forms import Form
from ..layouts import Axes
from ..preparing.calls import put_in_place_of_calls
from ..writing.building import OUTSIDE, Sent, channel_of
from . import collective_matmul, combining, cpus, loops, rewrites, tpus
from .collective_matmul import Window


@dataclass
class Draft:
    """A device program as passes change it: the module, its collectives in order, and the collectives that go
    on beside products (``windows``), which are ops of the module that it is a copy of (``source``).
    ``annotated``: ops in it may say what only the annotated module says. ``repeats``: some collectives may
    send what others do. ``apart`` are the permutations that windows are written as, which are combined with
    nothing."""

    module: ir.Module
    sent: Sequence[Sent]
    traits: OpTraits
    axes: Axes
    form: Form
    annotated: bool = False
    loops: bool = True
    repeats: bool = True
    source: ir.Module | None = None
    windows: Sequence[Window] = ()
    apart: set[Any] = field(default_factory=set)

    def after(self, passes: Sequence[Pass]) -> Draft:
        """The draft itself, after some passes."""
        for change in passes:
            change(self)
        return self


Pass = Callable[[Draft], None]

# ---- What decides how much is sent -----------------------------------------------------------------------


def drop_annotations(draft: Draft) -> None:
    """Takes what only the annotated module says from ops that were copied with what is around them: those of
    comparisons, and of functions that these call."""
    for op in operations_in(draft.module) if draft.annotated else ():
        for label in OUTSIDE:
            if label in op.attributes:
                del op.attributes[label]


def erase_unused(draft: Draft) -> None:
    """Erases collectives that nothing uses, with what was made for them alone."""
    used, pure = list[Sent](), draft.traits.family("pure_op")
    for collective in reversed(draft.sent):
        if is_used(collective.op):
            used.append(collective)
            continue
        waiting: list[Any] = [collective.op]
        while waiting:
            op = waiting.pop()
            sources = [value.owner for value in op.operands]
            op.erase()
            for source in sources:
                if isinstance(source, ir.Block) or source.operation.name not in pure or source in waiting:
                    continue
                if not is_used(source):
                    waiting.append(source)
    draft.sent = used[::-1]


def permute_directly(draft: Draft) -> None:
    """Makes one of two permutations of which the second alone takes what the first gives."""
    draft.sent = combining.permuted_directly(draft.sent)


def permute_at_once(draft: Draft) -> None:
    """Makes one of the permutations in which no device sends twice, and none receives."""
    draft.sent = combining.permuted_at_once(draft.module, draft.sent, draft.traits)


# ---- What is handed out ----------------------------------------------------------------------------------


def turn_products(draft: Draft) -> None:
    """Exchanges the operands of products that are transposed behind their collectives."""
    rewrites.turn_products([each.op for each in draft.sent], draft.traits)


def negate_behind(draft: Draft) -> None:
    """Negates sums behind their collectives, in place of what is summed."""
    rewrites.negate_behind([each.op for each in draft.sent], draft.traits)


def send_before_loops(draft: Draft) -> None:
    """Puts collectives that send the same in all turns of a loop before it."""
    if draft.loops:
        draft.sent, moved = loops.sent_before_loops(draft.module, draft.sent, draft.traits)
        draft.repeats |= moved  # beside what was there already


def send_once(draft: Draft) -> None:
    """Erases collectives that send what others do."""
    if draft.repeats:
        draft.sent = combining.sent_once(draft.module, draft.traits, draft.sent)


# ---- What is printed or compiled -------------------------------------------------------------------------


def write_windows(draft: Draft) -> None:
    """Writes the collectives that go on beside products part by part, as rings of permutations."""
    if not draft.windows or draft.source is None:
        return
    with draft.module.context, ir.Location.unknown():
        parts = {op for window in draft.windows for op in window.ops}
        # No others are held in Python: those in an op that is erased would be left behind there.
        copies = {
            op.operation: copy.operation
            for op, copy in zip(ops_in(draft.source), ops_in(draft.module), strict=True)
            if op.operation in parts
        }
        channel = max(channel_of(each.op) for each in draft.sent)
        made = draft.windows, copies, draft.axes, draft.traits, draft.form, channel
        draft.apart = collective_matmul.write(*made)


def combine(draft: Draft) -> None:
    """Makes one of the collectives over equal groups that do not need each other."""
    combining.combine(draft.module, draft.traits, draft.apart)


def combine_calls(draft: Draft) -> None:
    """Puts small functions that send something in the place of their calls, and combines what they send:
    behind ``combine``, for what a function sends at once is found best where nothing else is around."""
    if draft.sent and put_in_place_of_calls(draft.module, draft.traits, draft.apart):
        combine(draft)


def send_rows(draft: Draft) -> None:
    """Writes gathers and scatters of columns as those of rows, which XLA for CPUs copies less for."""
    cpus.send_rows(draft.module)


def copy_less(draft: Draft) -> None:
    """Exchanges the operands of products where XLA for CPUs would copy the larger one."""
    cpus.copy_less(draft.module, draft.traits)


def combine_loose(draft: Draft) -> None:
    """Combines gathers of vectors and scatters of small parts, which XLA for TPUs does not."""
    tpus.combine_loose(draft.module, draft.traits, draft.apart)


def combine_matrices(draft: Draft) -> None:
    """Combines small gathers and scatters of matrices with as many columns, one behind the other."""
    tpus.combine_matrices(draft.module, draft.traits, draft.apart)


def fit_tiles(draft: Draft) -> None:
    """Writes what XLA for TPUs would send twice, or does not know, as what it sends once."""
    tpus.fit_tiles(draft.module)


# ---- The order -------------------------------------------------------------------------------------------

COUNTED: tuple[Pass, ...] = (drop_annotations, erase_unused, permute_directly, permute_at_once)
FINISHED: tuple[Pass, ...] = (turn_products, negate_behind, send_before_loops, send_once)
COMBINED: tuple[Pass, ...] = (write_windows, combine, combine_calls)
CPU: tuple[Pass, ...] = (send_rows, copy_less)  # behind COMBINED
TPU: tuple[Pass, ...] = (write_windows, combine_loose, combine_matrices, fit_tiles)
OTHERS: tuple[Pass, ...] = (write_windows,)
