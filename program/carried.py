"""The parts of shardings that sdy cannot express: see ``importers/dialects/normal.py``."""

from __future__ import annotations

from dataclasses import replace

from jaxlib.mlir import ir

from ..errors import ShardlogError
from .function import location
from .meshes import symbol
from .mlir.modules import operations_in, symbols
from .mlir.types import Attributes, Operation
from .reductions import COMBINED_BY, OF_EQUALS
from .shardings import Sharding, Shardings, is_writable
from .signature import text_of

DYNAMIC = -(1 << 63)  # among numbers of an attribute: `?`, which is not known or which an operand has
UNKNOWN = "shard.unknown"  # on a mesh: the axes whose sizes are not known
AXES = "shard.axes"  # on a grid: a name for each axis; "x:(2)4" is a part of an axis
HALO, OFFSETS, PARTIAL = "shard.halo", "shard.offsets", "shard.partial"  # as the dialects have them
ENTRIES = "shard.entries"  # of how many dimensions an annotation speaks, where not of all
UNEVEN = "shard.uneven"  # on an argument or a result: its sharding, with axes that do not divide it, as text
SAID = "shard.said"  # on an annotation: all that sdy says, as text
OPTION = "shard.option"  # on an op: its grid and the axes of each of its loops, as --option says them
INSERTED = "shard.inserted"  # on a constraint that completion has put before an op, or behind it
SPELLING = "shard.spelling"  # on a module: it is of one of the sharding dialects of MLIR, spelled like this
LOCAL = "shard.local"  # on a module that came as the program of one device: it has a row of each tensor
DEVICE_OF = "shard.device_of"  # on a module without collectives: it is the program of one device of this grid
ALIKE = (
    "shard.alike_along"  # on an argument of such a program: all devices along these axes are given the same
)
_OF_ENDS = ("arg_attrs", "res_attrs")
_REFUSED = "a partial result of this reduction is not supported by"


def grids_of_collectives(module: ir.Module) -> set[str]:
    """The names of the grids that ops of a program of one device name."""
    ops = (op for op in operations_in(module) if op.name.startswith("shard.") and "grid" in op.attributes)
    return {ir.FlatSymbolRefAttr(op.attributes["grid"]).value for op in ops}


def note_device(module: ir.Module, grids: set[str]) -> None:
    """Notes on a program of one device which had collectives on one grid, or might have, that it is one: if
    nothing in it says so any more."""
    if len(grids) == 1 and not grids_of_collectives(module):
        with module.context:
            module.operation.attributes[DEVICE_OF] = ir.FlatSymbolRefAttr.get(*grids)


def has_unknown_sizes(module: ir.Module) -> bool:
    """Whether a mesh of a module has axes of unknown size."""
    return any(UNKNOWN in op.attributes for op in symbols(module, "sdy.mesh").values())


def check_sizes(module: ir.Module, asker: str, otherwise: str = "") -> None:
    """Raises ShardlogError for a mesh with axes of unknown size, which ``asker`` needs. ``otherwise`` is
    added to the advice."""
    for name, op in symbols(module, "sdy.mesh").items():
        if UNKNOWN in op.attributes and f"<{symbol(name)}," in str(module):  # and its sizes matter
            (axis, *_) = ir.DenseI64ArrayAttr(op.attributes[UNKNOWN])
            hint = f"give the sizes of all of its axes, as in --mesh {name}=2x3{otherwise}"
            message = f"axis {axis} of {symbol(name)} has no size, which {asker} needs"
            raise ShardlogError(message, where=location(op), hint=hint)


def check_carried(module: ir.Module, asker: str) -> None:
    """Raises ShardlogError for annotations that ``asker`` does not honour; also as ``check_sizes``."""
    if SPELLING not in module.operation.attributes:
        return
    check_sizes(module, asker)
    for op in operations_in(module):
        if PARTIAL in op.attributes:
            _check_partial(op, op.attributes, op.results[0].type, asker)
        if op.name != "func.func":
            continue
        for label in filter(op.attributes.__contains__, _OF_ENDS):
            types = op.opview.type.inputs if label == "arg_attrs" else op.opview.type.results
            for entry, type_ in zip(op.attributes[label], types, strict=True):
                if PARTIAL not in entry:
                    continue
                _check_partial(op, entry, type_, asker)
                if (kind := _partial(entry)[0]) not in OF_EQUALS:
                    message = f"a partial {kind} at the boundary of a function is not supported by {asker}"
                    choices = f"known are sum, {', '.join(OF_EQUALS)}"
                    hint = f"{choices}; leave it out, and the tensor is whole there"
                    raise ShardlogError(message, where=location(op), hint=hint)


def _check_partial(op: Operation, held: Attributes, type_: ir.Type, asker: str) -> None:
    """Raises ShardlogError for a reduction, said by attributes, that no collective can make of a type."""
    kind, _ = _partial(held)
    if kind not in COMBINED_BY:
        hint = f"known are {', '.join(COMBINED_BY)}; leave it out, and results are whole"
        raise ShardlogError(f"{_REFUSED} {asker}: {kind}", where=location(op), hint=hint)
    element = ir.ShapedType(type_).element_type
    if why := misfit(kind, element):
        message = f"a partial {kind} of {element} is not supported by {asker}"
        raise ShardlogError(message, where=location(op), hint=f"{why}: leave it out, and the tensor is whole")


def misfit(kind: str, element: ir.Type) -> str:
    """Why elements of a type have no reduction of a kind; empty if they have it."""
    if kind.startswith("bitwise") and not isinstance(element, ir.IntegerType):
        return "only integers are reduced bit by bit"
    if kind == "average" and isinstance(element, ir.IntegerType):
        return "an average of integers is not an integer"
    if kind in ("max", "min") and isinstance(element, ir.ComplexType):
        return "complex numbers have no order"
    return ""


def without_partial(sharding: Sharding, shardings: Shardings) -> tuple[Sharding, dict[str, ir.Attribute]]:
    """A sharding as sdy writes it, and the attributes beside it for a reduction that sdy lacks."""
    if not sharding.unreduced or is_writable(sharding.reduction):
        return sharding, {}
    text = f"{sharding.reduction}{{{shardings.axes_text(sharding.mesh, sharding.unreduced)}}}"
    return replace(sharding, unreduced=(), reduction="sum"), {PARTIAL: ir.StringAttr.get(text)}


def with_partial(sharding: Sharding, held: Attributes | None, shardings: Shardings) -> Sharding:
    """A sharding with a reduction that sdy lacks, by the attributes beside it."""
    if held is None or PARTIAL not in held:
        return sharding
    kind, axes = _partial(held)
    name = symbol(shardings.meshes.meshes[sharding.mesh].name)
    carried = shardings.read(ir.Attribute.parse(f"#sdy.sharding<{name}, [], unreduced={{{axes}}}>"))
    return replace(sharding, unreduced=carried.unreduced, reduction=kind)


def _partial(held: Attributes) -> tuple[str, str]:
    """The reduction, and the axes as sdy writes them, that attributes say."""
    kind, _, axes = text_of(held[PARTIAL]).partition("{")
    return kind, axes.removesuffix("}")
