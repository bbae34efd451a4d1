"""Views of a program: as it was lowered, after a round trip through HLO, and as XLA gives it to Shardy."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from ..errors import ShardlogError
from ..program.modules import symbols
from .compiling import dump
from .dumps import FLAGS, read_dump
from .source import Text, parse_module, read_source

VIEWS = ("lowered", "roundtrip", "compiled")


def view_of(source: Any, view: str, module: str = "") -> Text:
    """A program as XLA sees it: "lowered", as it is given; "roundtrip", as it comes back from HLO, where CHLO
    is lowered and loops are simplified; "compiled", as a real compile on its platform gives it to Shardy.

    Raises ShardlogError for what cannot be compiled.
    """
    if view not in VIEWS:
        raise ShardlogError(f"there is no view {view!r}", hint=f"there are {', '.join(VIEWS)}")
    if isinstance(source, Text):
        return source  # a view already
    if view == "compiled":
        return _compiled(source, module)
    text = read_source(source, module)
    return text if view == "lowered" else _round_trip(text)


def _round_trip(text: Text) -> Text:
    from jaxlib import _jax

    try:
        computation = _jax.mlir.mlir_module_to_xla_computation(
            text.data, use_tuple_args=False, return_tuple=False
        )
        data = _jax.mlir.hlo_to_stablehlo(computation.as_serialized_hlo_module_proto())
    except (RuntimeError, ValueError) as error:
        raise ShardlogError(f"XLA does not take it: {error}", where=text.name) from None
    return replace(text, data=data)


def _compiled(source: Any, module: str) -> Text:
    text = read_source(source, module)
    with tempfile.TemporaryDirectory(prefix="shardlog-") as folder:
        options = FLAGS | {"xla_dump_to": folder}
        if hasattr(source, "compile") and hasattr(source, "compiler_ir"):  # a jax.stages.Lowered
            try:
                source.compile(compiler_options=options)
            except Exception as error:  # XLA's, of many classes
                raise ShardlogError(f"XLA does not compile it: {error}", where=text.name) from None
        else:
            dump(text.data, _devices(text), Path(folder), options, text.name)
        found = read_dump(Path(folder))
    return replace(found, name=text.name, interface=text.interface)


def _devices(text: Text) -> int:
    """How many devices the meshes of a module have."""
    meshes = symbols(parse_module(text), "sdy.mesh").values()
    return max((prod(axis.size for axis in mesh.attributes["mesh"].axes) for mesh in meshes), default=1)
