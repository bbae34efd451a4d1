"""XLA's notation for shardings by named axes, which HLO has since jaxlib 0.11: sdy's in other words.

    {mesh['a'=2,'b'=4], [{'a'}, {}]}                            sdy's [{"a"}, {}], with its mesh
    {mesh['a'=2,'b'=4], [{'b':(1)2}, {'a', ?}]}                 sub-axes, and dimensions that are open
    {mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)), [{'a'}]}      the order of devices, or their list: (0,2,1,3)
    {mesh['a'=2,'b'=4], [{}], replicated={'a'}, unreduced=max{'b'}, manual={'c'}}
    {mesh['a'=2,'b'=4], manual}                                 all axes; also replicated, unreduced=max
    {mesh[], replicated}                                        on all devices, whichever mesh there is
    {single_device[device_id=3]}                                in 0.11: {maximal_mesh[device_id=3]}

Names stand in single quotes; a backslash escapes quotes and backslashes in them. ``metadata={...}`` is
skipped. As in XLA's importer, its meshes become meshes of the module.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...errors import ShardlogError
from ...program.meshes import Mesh, SubAxis, axis_text, quoted, symbol
from ...program.shardings import Dimension
from ..marks import NAMED


@dataclass(frozen=True)
class NamedSharding:
    """A sharding of one tensor by the axes of a mesh; only one of a single device has a name.

    No ``dimensions``: it is of any rank, and no dimension has axes. Along ``unreduced`` axes the value is
    the ``reduction`` ("sum", "max" or "min") of the devices' values.
    """

    mesh: Mesh
    dimensions: tuple[Dimension, ...] = ()
    replicated: tuple[SubAxis, ...] = ()
    unreduced: tuple[SubAxis, ...] = ()
    manual: tuple[SubAxis, ...] = ()
    reduction: str = "sum"

    def attribute(self, kind: ir.Type) -> ir.Attribute:
        """``#sdy.sharding`` with the mesh or its name in it, for a tensor of this type, in the current
        context. Manual axes are in no dimension, as inside of a manual computation. Raises ShardlogError
        where the rank does not fit, or this version of sdy does not know the reduction."""
        rank = kind.rank if isinstance(kind, ir.RankedTensorType) else 0
        dimensions = self.dimensions
        if not dimensions:
            dimensions = () if self.mesh.maximal else (Dimension(closed=True),) * rank
        elif len(dimensions) != rank:
            message = f"a sharding of {len(dimensions)} dimensions, and the tensor has rank {rank}"
            raise ShardlogError(message, hint="expected one entry for each dimension")
        listed = ", ".join(
            "{" + ", ".join([*map(self._axis, d.axes), *["?"] * (not d.closed)]) + "}" for d in dimensions
        )
        reduction = "" if self.reduction == "sum" else self.reduction
        axes = [f"{quoted(name)}={size}" for name, size in self.mesh.axes]
        ids = f", device_ids=[{', '.join(map(str, self.mesh.device_ids))}]" if self.mesh.device_ids else ""
        mesh = symbol(self.mesh.name) if self.mesh.name else f"mesh<[{', '.join(axes)}]{ids}>"
        text = f"#sdy.sharding<{mesh}, [{listed}]"
        for label, several in (("replicated=", self.replicated), (f"unreduced={reduction}", self.unreduced)):
            text += f", {label}{{{', '.join(map(self._axis, several))}}}" if several else ""
        try:
            attribute: ir.Attribute = sdy.TensorShardingAttr(ir.Attribute.parse(text + ">"))
        except ir.MLIRError as error:
            message = error.error_diagnostics[0].message if error.error_diagnostics else str(error)
            raise ShardlogError(f"not a sharding of sdy: {message}") from None
        return attribute

    def _axis(self, axis: SubAxis) -> str:
        return axis_text(axis, self.mesh, quoted(axis.name))


def is_named(attribute: ir.Attribute) -> bool:
    """Whether an attribute is a string in this notation: a sharding, or a tuple with one."""
    return isinstance(attribute, ir.StringAttr) and any(start in attribute.value_bytes for start in NAMED)
