"""Checks of collectives of the dialect shard, and of queries to a grid."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...program.carried import DYNAMIC
from ...program.function import location
from ...program.mlir.modules import operations_in
from ...program.mlir.types import Operation
from ...rulebook.shipped import shipped
from .grids import Grid, Spec, axis_lists, check_kind, counted, integers, kind_of


class Collectives:
    """Facts about collectives by name; see ``rules/dialects/collectives.dl``."""

    def __init__(self) -> None:
        rows = shipped("dialects/statements").evaluate({})
        self.gathers: dict[str, str] = dict(rows["gathers"])
        self.splits: dict[str, str] = dict(rows["splits"])
        self.in_group: dict[str, str] = dict(rows["in_group"])
        self.keeps_shape, self.keeps_elements, self.may_leave_open = (
            {n for (n,) in rows[r]} for r in ("keeps_shape", "keeps_elements", "may_leave_open")
        )
        self.names_axes: dict[str, str] = dict(rows["names_axes"])
        self.names_axis_of_group: dict[str, str] = dict(rows["names_axis_of_group"])
        self.counts_axes: dict[str, str] = dict(rows["counts_axes"])
        self.whole: dict[str, tuple[str, str]] = {op: (name, label) for op, name, label in rows["whole"]}
        self.at_device = {op for (op,) in rows["at_device"]}
        self.kinds = [kind for (kind,) in rows["reduces_by"]]
        self.renamed: dict[str, dict[str, str]] = defaultdict(dict)
        for op, attribute, name in rows["renamed"]:
            self.renamed[op][attribute] = name

    def knows(self, op: str) -> bool:
        """Whether an op takes part of a grid's axes."""
        return op in self.names_axes or op in self.keeps_shape


@cache
def collectives() -> Collectives:
    """Facts about collectives, read once."""
    return Collectives()


def has_whole_collectives(module: ir.Module) -> bool:
    """Whether a module has collectives of whole tensors, as the RFC and sdy have."""
    names = {name for name, _ in collectives().whole.values()}
    return any(op.name in names for op in operations_in(module))


def check_collective(op: Operation, grid: Grid) -> None:
    """Raises ShardlogError for an invalid op."""
    _OpCheck(op, grid).run()


class _OpCheck:
    def __init__(self, op: Operation, grid: Grid) -> None:
        self.op, self.grid = op, grid
        self.rules = collectives()
        self.name: str = op.operation.name
        self.where = location(op)
        label = self.rules.names_axes.get(self.name, "")
        self.axes = integers(op.attributes.get(label))

    def run(self) -> None:
        self.check_axes()
        if "reduction" in self.op.attributes:
            check_kind(kind_of(self.op.attributes["reduction"]), self.rules.kinds, self.where)
        if self.name in self.rules.in_group:
            self.check_device(self.rules.in_group[self.name])
        if self.name in self.rules.names_axis_of_group:
            self.check_axis_of_group(self.rules.names_axis_of_group[self.name])
        if self.name in self.rules.counts_axes:
            self.check_results()
        if self.name in self.rules.at_device and len(self.op.operands) != len(self.grid.sizes):
            given, wanted = len(self.op.operands), len(self.grid.sizes)
            number = counted(given, "coordinate")
            raise self.fail(f"{number} of a device", f"give {wanted}, one for each axis of the grid")
        if "static_halo_sizes" in self.op.attributes:
            self.check_halo()
        if len(self.op.operands) and len(self.op.results):
            self.check_types()

    def fail(self, message: str, hint: str) -> ShardlogError:
        return ShardlogError(f"{self.name}: {message}", where=self.where, hint=hint)

    def check_axes(self) -> None:
        axes, count = self.axes, len(self.grid.sizes)
        if self.name not in self.rules.names_axes:
            axes = tuple(axis for entry in axis_lists(self.op.attributes.get("split_axes")) for axis in entry)
        for axis in axes:
            if not 0 <= axis < count:
                message = f"axis {axis}, and the grid has {counted(count, 'axis', 'axes')}"
                raise self.fail(message, self.grid.range_of_axes)
            if axes.count(axis) > 1:
                raise self.fail(f"axis {axis} is listed twice", "list every axis once")

    def check_device(self, label: str) -> None:
        """A device of the group has a coordinate for each of its axes."""
        if label not in self.op.attributes:
            return
        coordinates = integers(self.op.attributes[label])
        if len(coordinates) != len(self.axes):
            number, axes = counted(len(coordinates), "coordinate"), counted(len(self.axes), "axis", "axes")
            raise self.fail(f"{label} has {number} for {axes}", "give one for each of grid_axes")
        for axis, coordinate in zip(self.axes, coordinates, strict=True):
            size = self.grid.sizes[axis]
            if coordinate == DYNAMIC:
                continue
            if coordinate < 0 or (size is not None and coordinate >= size):
                of = f" of {size}" if size is not None else ""
                hint = (
                    f"along axis {axis} coordinates are 0 to {size - 1}"
                    if size is not None
                    else "give 0 or more"
                )
                raise self.fail(f"{label} coordinate {coordinate}{of}", hint)

    def check_axis_of_group(self, label: str) -> None:
        (axis,) = integers(self.op.attributes[label])
        if axis not in self.axes:
            listed = ", ".join(map(str, self.axes))
            hint = f"it shifts along one of them: {listed}" if self.axes else "list it in grid_axes"
            raise self.fail(f"{label} {axis} is not one of grid_axes [{listed}]", hint)

    def check_results(self) -> None:
        wanted, given = len(self.axes) or len(self.grid.sizes), len(self.op.results)
        if wanted != given:
            results, axes = counted(given, "result"), counted(wanted, "axis", "axes")
            raise self.fail(f"{results} for {axes}", "give a result of type index for each axis")

    def check_halo(self) -> None:
        """A dimension that is sharded has a halo on either side."""
        lists = axis_lists(self.op.attributes["split_axes"])
        type_ = self.op.operands[0].type
        spec = Spec(self.grid.name, lists, halo=integers(self.op.attributes["static_halo_sizes"]))
        ranked = isinstance(type_, ir.RankedTensorType)
        spec.fit(self.grid, type_.rank if ranked else None, self.where)
        sharded = [d for d, axes in enumerate(lists) if axes]
        for d, low, high in zip(sharded, spec.halo[::2], spec.halo[1::2], strict=True):
            static = ranked and not type_.is_dynamic_dim(d) and DYNAMIC not in (low, high)
            if static and low + high > type_.shape[d]:
                hint = "the tensor has the halo around its own rows"
                raise self.fail(f"halos of {low} and {high} in {type_.shape[d]} rows of dimension {d}", hint)

    def check_types(self) -> None:
        before, after = self.op.operands[0].type, self.op.results[0].type
        if not (isinstance(before, ir.ShapedType) and isinstance(after, ir.ShapedType)):
            return
        if not (before.has_rank and after.has_rank):
            return
        one, two = ir.ShapedType(before), ir.ShapedType(after)
        if self.name in self.rules.keeps_elements and one.element_type != two.element_type:
            hint = "only reductions may convert"
            raise self.fail(f"elements of {one.element_type} become {two.element_type}", hint)
        wanted = [one.get_dim_size(i) for i in range(one.rank)]
        result_shape = [two.get_dim_size(i) for i in range(two.rank)]
        unknown = ir.ShapedType.get_dynamic_size()
        shape: list[int | None] = [None if size == unknown else size for size in wanted]
        group = self.grid.devices(self.axes)
        for table, grows in ((self.rules.splits, False), (self.rules.gathers, True)):
            if self.name in table:
                self.resize(shape, table[self.name], group, grows)
        if len(result_shape) != len(shape):
            raise self.fail(
                f"{len(shape)} dimensions become {len(result_shape)}", f"the result must have {len(shape)}"
            )
        for i, (size, given) in enumerate(zip(shape, result_shape, strict=True)):
            if given == unknown and self.name in self.rules.may_leave_open:
                continue
            if size is None and self.name in self.rules.keeps_shape:
                continue
            if given != (unknown if size is None else size):
                given_size, wanted_size = "?" if given == unknown else given, "?" if size is None else size
                before_it = "x".join("?" if n == unknown else str(n) for n in wanted)
                hint = f"the operand is {before_it}" + (f", the group has {group} devices" if group else "")
                raise self.fail(f"dimension {i} of the result must be {wanted_size}, not {given_size}", hint)

    def leaves_open(self, dimension: int) -> bool:
        """Whether the size of a dimension of the result is left open, and may be."""
        after = ir.ShapedType(self.op.results[0].type)
        return self.name in self.rules.may_leave_open and after.is_dynamic_dim(dimension)

    def resize(self, shape: list[int | None], label: str, group: int | None, grows: bool) -> None:
        """Changes a dimension of a shape as the op does."""
        if label not in self.op.attributes:
            return
        (dimension,) = integers(self.op.attributes[label])
        if not 0 <= dimension < len(shape):
            message = f"{label} {dimension} of a tensor of {len(shape)} dimensions"
            raise self.fail(message, f"dimensions are 0 to {len(shape) - 1}")
        size = shape[dimension]
        if size is None or group is None:
            shape[dimension] = None
        elif grows:
            shape[dimension] = size * group
        elif size % group and self.leaves_open(dimension):
            shape[dimension] = None
        elif size % group:
            message = f"dimension {dimension} of size {size} cannot be split over {group} devices"
            raise self.fail(message, f"its size must be a multiple of {group}")
        else:
            shape[dimension] = size // group
