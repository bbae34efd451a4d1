"""How a version of the dialects spells grids and annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from ...importers.dialects.grids import kind_of
from ...program.carried import SAID
from ...program.mlir.modules import entries_of, put_like
from .grids import lists_attribute

_OF_MESH = {"grid": "mesh", "grid_axes": "mesh_axes"}
_WORDS_OF_MESH = {"grid_shape": "mesh_shape"}


@dataclass(frozen=True)
class Spelling:
    """A version: the name of its dialect, that of its grids, whether it says partial sums, and whether a
    sharding is a value of its own. ``scatter`` is the attribute for the dimension that is scattered."""

    dialect: str
    grid: str
    partial: bool
    values: bool
    scatter: str

    def annotate(self, make: Any, value: Any, spec: dict[str, Any], place: Any, users: bool) -> Any:
        """Writes an annotation of a value; returns the annotated one. ``make`` writes an op."""
        flags: dict[str, Any] = {"annotate_for_users": ir.UnitAttr.get()} if users else {}
        name = f"{self.dialect}.shard"
        if not self.values:
            flags["shard"] = ir.Attribute.parse(self.text(spec))
            return make(name, [value], [value.type], flags | self.more(spec), place).results[0]
        made = make(f"{self.dialect}.sharding", [], [self.type], self.attributes(spec), place)
        return make(name, [value, made.results[0]], [value.type], flags, place).results[0]

    def respell(self, op: Any) -> None:
        """Puts an op of the version in the place of one of the newest, such as a collective."""
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

    def says(self, value: Any, spec: dict[str, Any]) -> bool:
        """Whether a value comes from an annotation for users that says this."""
        if isinstance(value.owner, ir.Block):
            return False
        op = value.owner.operation
        if op.name != f"{self.dialect}.shard" or "annotate_for_users" not in op.attributes:
            return False
        if not self.values:
            return bool(op.attributes["shard"] == ir.Attribute.parse(self.text(spec)))
        held = op.operands[1].owner.operation.attributes
        return all(held[label] == attribute for label, attribute in self.attributes(spec).items())

    @property
    def type(self) -> Any:
        return ir.Type.parse(f"!{self.dialect}.sharding")

    def attributes(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The attributes of the op that makes a sharding."""
        none = ir.DenseI64ArrayAttr.get([])
        found = {
            "grid": ir.FlatSymbolRefAttr.get(spec["grid"]),
            "split_axes": lists_attribute(spec["lists"], self.dialect),
            "static_halo_sizes": spec["halo"] or none,
            "static_sharded_dims_offsets": spec["offsets"] or none,
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
        }
        return found | self.more(spec)

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
