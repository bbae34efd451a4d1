"""Collectives of the RFC. They take whole tensors, as sdy's collectives do.

The axes along which a tensor is in parts are in its type, or follow from its operand. The RFC's reference
gives a list of axes for each dimension (``mesh_axis = [[0], [1]]``). Its walk-through gives lists for some
dimensions, which it names (``mesh_axis = [[0]], tensor_axis = [2]``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...program.mlir.types import Operation
from .checks import collectives
from .grids import Grid, Spec, integers

Axes = tuple[int, ...]


@dataclass(frozen=True)
class Whole:
    """A collective of whole tensors: its name in the dialect shard, its axes by dimension (``of``; empty if
    it only reduces), and how it reduces."""

    name: str
    where: str
    of: dict[int, Axes]
    axes: Axes
    reduction: str

    def before(self, rank: int, grid: str) -> Spec:
        """The default sharding of its operand: in as few parts as possible."""
        gathers = self.name in collectives().gathers
        lists = tuple(self.of.get(i, ()) if gathers else () for i in range(rank))
        every = tuple(axis for axes in self.of.values() for axis in axes) + self.axes
        return Spec(grid, lists, every if "reduce" in self.name else ())

    def after(self, before: Spec) -> Spec:
        """The sharding of its result, from the sharding of its operand.

        Raises ShardlogError if the operand is neither in parts nor partial along its axes.
        """
        names, reduces = collectives(), "reduce" in self.name
        every = [axis for axes in self.of.values() for axis in axes] + [*self.axes]
        lists = [*before.axes]
        for dimension, axes in self.of.items():
            if self.name in names.gathers:
                kept = lists[dimension][: len(lists[dimension]) - len(axes)]
                if kept + axes != lists[dimension]:
                    raise self.fail(
                        f"dimension {dimension} is sharded on {_text(lists[dimension])}", "gathers", axes
                    )
                lists[dimension] = kept
            else:
                lists[dimension] = lists[dimension] + axes
        if not reduces:
            return replace(before, axes=tuple(lists))
        if not set(every) <= set(before.partial):
            raise self.fail(f"the operand is partial on {_text(before.partial)}", "reduces", every)
        left = tuple(axis for axis in before.partial if axis not in every)
        return replace(before, axes=tuple(lists), partial=left)

    def fail(self, message: str, does: str, axes: Sequence[int]) -> ShardlogError:
        """The error where a collective has another operand than it says."""
        hint = "annotate the type of the operand, as in tensor<4x8xf32, #mesh.shard<[[0]]>>"
        message = f"{self.name}: {message}, and it {does} {_text(axes)}"
        return ShardlogError(message, where=self.where, hint=hint)


def read_whole(op: Operation, name: str, grid: Grid, reduction: str, where: str) -> tuple[Whole, str]:
    """The meaning of a collective of the RFC, and a note on ambiguities. ``name`` is its name in the dialect
    shard. Raises ShardlogError for an invalid op."""
    held, names, note = op.attributes, collectives(), ""
    lists = _lists(held.get("mesh_axis"))
    rank = op.operands[0].type.rank
    if name not in names.gathers and name not in names.splits:
        axes = tuple(axis for entry in lists for axis in entry)
        grid.check(axes, where)
        return Whole(name, where, {}, axes, reduction), note
    if "tensor_axis" in held:
        dimensions = [*integers(held["tensor_axis"])]
        if len(lists) == rank and len(lists) != len(dimensions):  # one for each dimension, as without them
            lists = [entry for i, entry in enumerate(lists) if entry or i in dimensions]
    else:
        dimensions = [i for i, axes in enumerate(lists) if axes]
        lists = [axes for axes in lists if axes]
        numbers = ", ".join(map(str, dimensions))
        note = f"{op.name} names no tensor_axis: its lists of axes are assumed to be for dimensions {numbers}"
    if len(dimensions) != len(lists):
        message = f"{op.name}: {len(lists)} lists of axes for {len(dimensions)} dimensions"
        raise ShardlogError(message, where=where, hint="give a dimension in tensor_axis for each list")
    for dimension in dimensions:
        if not 0 <= dimension < rank:
            message = f"{op.name}: tensor_axis {dimension} of a tensor of {rank} dimensions"
            raise ShardlogError(message, where=where, hint=f"dimensions are 0 to {rank - 1}")
        if dimensions.count(dimension) > 1:
            message = f"{op.name}: tensor_axis {dimension} is listed twice"
            raise ShardlogError(message, where=where, hint="list every dimension once, with all of its axes")
    grid.check([axis for entry in lists for axis in entry], where)
    return Whole(name, where, dict(zip(dimensions, lists, strict=True)), (), reduction), note


def read_target(op: Operation, name: str, before: Spec, target: Spec, where: str) -> Whole:
    """The meaning of a collective that has the sharding of its result in place of axes, from the sharding of
    its operand. Raises ShardlogError if it does more than gather or split."""
    less, more = (target, before) if name in collectives().gathers else (before, target)
    of, agrees = dict[int, Axes](), name in collectives().whole and "reduce" not in name
    for i, (kept, axes) in enumerate(zip(less.axes, more.axes, strict=True)):
        agrees = agrees and axes[: len(kept)] == kept
        if axes != kept:
            of[i] = axes[len(kept) :]
    if not agrees or set(before.partial) != set(target.partial):
        hint = "a split adds axes to its operand's, and a gather removes them"
        message = f"{op.name} from {before.lists()} to {target.lists()}"
        raise ShardlogError(message, where=where, hint=hint)
    return Whole(name, where, of, (), "sum")


def attributes_of(whole: Whole, rank: int) -> dict[str, ir.Attribute]:
    """The attribute of sdy's collective that says its axes."""
    label = collectives().whole[whole.name][1]
    if not whole.of:
        return {label: ir.Attribute.parse(f"#sdy<axis_ref_list{_names(whole.axes)}>")}
    lists = ", ".join(_names(whole.of.get(i, ())) for i in range(rank))
    return {label: ir.Attribute.parse(f"#sdy<list_of_axis_ref_lists[{lists}]>")}


def _lists(attribute: Any) -> list[Axes]:
    """The lists of axes of a collective, which a flat list is one of."""
    if attribute is None:
        return [()]
    nested = isinstance(attribute, ir.ArrayAttr) and any(isinstance(e, ir.ArrayAttr) for e in attribute)
    return [integers(entry) for entry in attribute] if nested else [integers(attribute)]


def _names(axes: Sequence[int]) -> str:
    return "{" + ", ".join(f'"{axis}"' for axis in axes) + "}"


def _text(axes: Sequence[int]) -> str:
    return f"[{', '.join(map(str, axes))}]"
