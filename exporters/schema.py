"""The relations of a finished run, by their columns. Saved runs are asked for them without a module."""

from __future__ import annotations

# Names of the columns and the Datalog type of each; values, meshes and axes are symbols.
SCHEMA: dict[str, tuple[tuple[str, str], ...]] = {
    "value": (("v", "symbol"), ("type", "symbol")),
    "dim": (("v", "symbol"), ("d", "dimension"), ("size", "number")),
    "argument": (("v", "symbol"), ("i", "number")),
    "returned": (("v", "symbol"), ("i", "number")),
    "path": (("v", "symbol"), ("name", "symbol")),
    "op": (("o", "op_id"), ("name", "symbol")),
    "location": (("o", "op_id"), ("where", "symbol")),
    "operand": (("o", "op_id"), ("i", "number"), ("v", "symbol")),
    "result": (("o", "op_id"), ("i", "number"), ("v", "symbol")),
    "factor": (("o", "op_id"), ("f", "factor_id"), ("size", "number")),
    "maps": (("o", "op_id"), ("t", "slot_id"), ("d", "dimension"), ("j", "position"), ("f", "factor_id")),
    "mesh_axis": (("m", "symbol"), ("x", "symbol"), ("size", "number")),
    "mesh": (("v", "symbol"), ("m", "symbol")),
    "sharded": (("v", "symbol"), ("d", "dimension"), ("k", "position"), ("x", "symbol")),
    "closed": (("v", "symbol"), ("d", "dimension")),
    "fixed": (("v", "symbol"), ("x", "symbol"), ("why", "symbol")),
    "partial": (("v", "symbol"), ("x", "symbol"), ("reduction", "symbol")),
    "annotated": (("v", "symbol"),),
}


def declarations() -> str:
    """The relations of ``SCHEMA``, all of them input, and the types of their columns, as Datalog."""
    columns = {name: ", ".join(f"{column}: {kind}" for column, kind in row) for name, row in SCHEMA.items()}
    kinds = {kind: None for row in SCHEMA.values() for _, kind in row if kind not in ("number", "symbol")}
    types = "".join(f".type {kind} <: number\n" for kind in kinds)
    return types + "".join(f".decl {name}({columns[name]})\n.input {name}\n" for name in SCHEMA)
