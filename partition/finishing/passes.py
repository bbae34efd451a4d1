"""Passes over a device program after it is written: all of them, in order.

A pass is a function that changes a draft, and the first sentence of its docstring says what it does. The
lists at the end are the order. ``COUNTED`` passes determine how much a program sends. ``FINISHED`` ones make
the program that users get. The others prepare it for printing or for a compiler (``COMBINED``, ``CPU``,
``TPU``, ``OTHERS``).
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
from . import collective_matmul, cpus, indices, loops, rewrites, tpus, unsupported
from .collective_matmul import Window
from .combining import combining, duplicates


@dataclass
class Draft:
    """A device program as passes change it: the module, its collectives in order, and those that overlap with
    products (``windows``), which are ops of the ``source`` module that this one is a copy of. ``annotated``:
    its ops may have attributes that only the annotated module needs. ``indices``: it may have index tensors.
    ``repeats``: some collectives may be duplicates. ``apart`` are the permutations that make up windows,
    which are never combined."""

    module: ir.Module
    sent: Sequence[Sent]
    traits: OpTraits
    axes: Axes
    form: Form
    annotated: bool = False
    loops: bool = True
    indices: bool = False
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

# ---- Passes that determine how much is sent --------------------------------------------------------------


def drop_annotations(draft: Draft) -> None:
    """Removes attributes and constraints that only the annotated module needs from ops that were copied with
    their region or function, such as comparisons."""
    for op in operations_in(draft.module) if draft.annotated else ():
        if draft.traits.lowering(op.name) == "identity":
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
            continue
        for label in OUTSIDE:
            if label in op.attributes:
                del op.attributes[label]


def erase_unused(draft: Draft) -> None:
    """Erases collectives without users, with the ops that only they need."""
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
    """Merges two permutations if the second is the only user of the first."""
    draft.sent = combining.permuted_directly(draft.sent)


def permute_at_once(draft: Draft) -> None:
    """Merges permutations in which no device sends twice, and none receives twice."""
    draft.sent = combining.permuted_at_once(draft.module, draft.sent, draft.traits)


# ---- Passes for all users --------------------------------------------------------------------------------


def compute_integers(draft: Draft) -> None:
    """Makes index tensors of StableHLO's ops integers, because these ops take no indices."""
    if draft.indices:
        indices.compute_integers(draft.module)


def turn_products(draft: Draft) -> None:
    """Exchanges the operands of products that are transposed after their collective."""
    rewrites.turn_products([each.op for each in draft.sent], draft.traits)


def negate_behind(draft: Draft) -> None:
    """Negates sums after their collective, instead of their terms."""
    rewrites.negate_behind([each.op for each in draft.sent], draft.traits)


def send_before_loops(draft: Draft) -> None:
    """Moves loop-invariant collectives before their loop."""
    if draft.loops:
        draft.sent, moved = loops.sent_before_loops(draft.module, draft.sent, draft.traits)
        draft.repeats |= moved  # beside those that were there already


def send_once(draft: Draft) -> None:
    """Erases duplicate collectives."""
    if draft.repeats:
        draft.sent = duplicates.sent_once(draft.module, draft.traits, draft.sent)


# ---- Passes for printing or compiling --------------------------------------------------------------------


def write_windows(draft: Draft) -> None:
    """Writes the collectives that overlap with products part by part, as rings of permutations."""
    if not draft.windows or draft.source is None:
        return
    with draft.module.context, ir.Location.unknown():
        parts = {op for window in draft.windows for op in window.ops}
        # Python must hold no other ops: those inside of an erased op would be dangling.
        copies = {
            op.operation: copy.operation
            for op, copy in zip(ops_in(draft.source), ops_in(draft.module), strict=True)
            if op.operation in parts
        }
        channel = max(channel_of(each.op) for each in draft.sent)
        request = draft.windows, copies, draft.axes, draft.traits, draft.form, channel
        draft.apart = collective_matmul.write(*request)


def combine(draft: Draft) -> None:
    """Merges independent collectives over equal groups."""
    combining.combine(draft.module, draft.traits, draft.apart)


def combine_calls(draft: Draft) -> None:
    """Inlines small functions that send something, and combines their collectives. It runs after ``combine``,
    because the collectives of a function are combined best on their own."""
    if draft.sent and put_in_place_of_calls(draft.module, draft.traits, draft.apart):
        combine(draft)


def send_rows(draft: Draft) -> None:
    """Writes gathers and scatters of columns as those of rows, for which XLA for CPUs copies less."""
    cpus.send_rows(draft.module)


def copy_less(draft: Draft) -> None:
    """Exchanges the operands of products if XLA for CPUs would copy the larger one."""
    cpus.copy_less(draft.module, draft.traits)


def combine_loose(draft: Draft) -> None:
    """Combines gathers of vectors and scatters of small parts, which XLA for TPUs does not."""
    tpus.combine_loose(draft.module, draft.traits, draft.apart)


def combine_matrices(draft: Draft) -> None:
    """Combines small gathers and scatters of matrices with the same number of columns, by rows."""
    tpus.combine_matrices(draft.module, draft.traits, draft.apart)


def fit_tiles(draft: Draft) -> None:
    """Rewrites collectives that XLA for TPUs would send twice, or does not support."""
    tpus.fit_tiles(draft.module)


def combine_bits(draft: Draft) -> None:
    """Writes bitwise reductions, which XLA has no collectives for, as gathers and exchanges."""
    unsupported.combine_bits(draft.module)


# ---- The order -------------------------------------------------------------------------------------------

COUNTED: tuple[Pass, ...] = (drop_annotations, erase_unused, permute_directly, permute_at_once)
FINISHED: tuple[Pass, ...] = (compute_integers, turn_products, negate_behind, send_before_loops, send_once)
COMBINED: tuple[Pass, ...] = (write_windows, combine, combine_calls)
CPU: tuple[Pass, ...] = (combine_bits, send_rows, copy_less)  # after COMBINED
TPU: tuple[Pass, ...] = (write_windows, combine_bits, combine_loose, combine_matrices, fit_tiles)
OTHERS: tuple[Pass, ...] = (write_windows, combine_bits)
