"""How a version of the dialects spells grids and annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from ...importers.dialects.grids import kind_of
from ...program.carried import SAID
from ...program.mlir.modules import entries_of, put_like
from ...program.mlir.types import Operation, Value
from .grids import lists_attribute

_OF_MESH = {"grid": "mesh", "grid_axes": "mesh_axes"}
_WORDS_OF_MESH = {"grid_shape": "mesh_shape", "grid": "mesh"}


@dataclass(frozen=True)
class Spelling:
    """A version of the dialect: its name, its op for grids, whether it has partial sums, and whether a
    sharding is a value. ``scatter`` is the name of the attribute for the scattered dimension."""

    dialect: str
    grid: str
    partial: bool
    values: bool
    scatter: str

    def annotate(self, make: Any, value: Value, sharding: Any, place: ir.Location, users: bool) -> Any:
        """Writes an annotation of a value; returns its op. ``make`` writes an op; ``sharding`` is a value, or
        the attributes that say it."""
        flags: dict[str, Any] = {"annotate_for_users": ir.UnitAttr.get()} if users else {}
        name = f"{self.dialect}.shard"
        if self.values:
            return make(name, [value, sharding], [value.type], flags, place)
        return make(name, [value], [value.type], flags | sharding, place)

    def respell(self, op: Operation) -> None:
        """Replaces an op of the newest version, such as a collective, by one of this version."""
        held = entries_of(op.attributes)
        if "scatter_dim" in held:
            held[self.scatter] = held.pop("scatter_dim")
        if self.dialect == "mesh":
            held = {_OF_MESH.get(label, label): attribute for label, attribute in held.items()}
            if "reduction" in held:
                held["reduction"] = ir.Attribute.parse(f"#mesh.partial<{kind_of(held['reduction'])}>")
        word = op.name.partition(".")[2]
        name = f"{self.dialect}.{_WORDS_OF_MESH.get(word, word) if self.dialect == 'mesh' else word}"
        if name == op.name and held.keys() == set(op.attributes):
            return
        put_like(op, name, held)
        op.erase()

    def says(self, value: Value, spec: dict[str, Any]) -> bool:
        """Whether a value comes from an annotation for users that says this."""
        if isinstance(value.owner, ir.Block):
            return False
        op = value.owner.operation
        if op.name != f"{self.dialect}.shard" or "annotate_for_users" not in op.attributes:
            return False
        held = op.operands[1].owner.operation.attributes if self.values else op.attributes
        attributes = spec["attributes"]
        same = all(label in held and held[label] == attribute for label, attribute in attributes.items())
        return same and (SAID in held) == (SAID in attributes)

    def completed(self, spec: dict[str, Any]) -> dict[str, Any]:
        """What an annotation says, with the ``attributes`` of the op that says it, and the ``type`` of a
        sharding."""
        return {
            **spec,
            "attributes": self.attributes(spec) | self.more(spec),
            "type": ir.Type.parse(f"!{self.dialect}.sharding") if self.values else None,
        }

    def attributes(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The attributes of the op that makes a sharding, or that annotates with one that is no value."""
        if not self.values:
            return {"shard": ir.Attribute.parse(self.text(spec))}
        none = ir.DenseI64ArrayAttr.get([])
        return {
            "grid": ir.FlatSymbolRefAttr.get(spec["grid"]),
            "split_axes": lists_attribute(spec["lists"], self.dialect),
            "static_halo_sizes": spec["halo"] or none,
            "static_sharded_dims_offsets": spec["offsets"] or none,
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
        }

    def more(self, spec: dict[str, Any]) -> dict[str, Any]:
        """What the dialect has no words for."""
        return {SAID: spec["more"]} if spec["more"] is not None else {}

    def text(self, spec: dict[str, Any]) -> str:
        """The attribute that is a sharding, where that is no value."""
        lists = ", ".join(f"[{', '.join(map(str, axes))}]" for axes in spec["lists"])
        kind, axes = spec["partial"]
        partial = f", partial = {kind}[{', '.join(map(str, axes))}]" if axes else ""
        return f"#mesh.shard<@{spec['grid']}, [{lists}]{partial}>"


SPELLINGS = {
    "19": Spelling("mesh", "mesh", partial=True, values=False, scatter="scatter_axis"),
    "22": Spelling("shard", "grid", partial=False, values=True, scatter="scatter_axis"),
    "main": Spelling("shard", "grid", partial=False, values=True, scatter="scatter_dim"),
}
