"""Programs in other files than MLIR's: what ``jax.export`` serializes, and texts of HLO."""

from __future__ import annotations

import re
import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from shardlog import cli
from shardlog.errors import ShardlogError
from shardlog.importers.sources.exported import bytecode_place

HLO = """HloModule m, entry_computation_layout={(f32[8,16]{1,0})->f32[8,16]{1,0}}

ENTRY main {
  x = f32[8,16]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT y = f32[8,16]{1,0} tanh(x)
}
"""


def serialized(module: bytes, trees: int = 0) -> bytes:
    """A flatbuffer as JAX writes it: a table with a module, after so many bytes of other fields."""
    index = struct.pack("<16H", 32, 8, *[0] * 13, 4)  # of the fields: module is the last one
    start = 4 + len(index)
    table = struct.pack("<iI", len(index), 4 + trees)  # its index, and how far the module is from here
    return struct.pack("<I", start) + index + table + bytes(trees) + struct.pack("<I", len(module)) + module


@pytest.fixture(scope="module")
def module() -> bytes:
    exported = jax.export.export(jax.jit(lambda w: jnp.tanh(w["up"])))
    return bytes(exported({"up": np.zeros((8, 16), np.float32)}).mlir_module_serialized)


def test_the_module_has_its_place_in_the_schema_of_jax() -> None:
    spec = find_spec("jax._src.export.serialization_generated")
    assert spec and spec.origin
    schema = Path(spec.origin).read_text()
    place = re.search(r"def MlirModuleSerialized\(.*?self\._tab\.Offset\((\d+)\)", schema, re.DOTALL)
    assert place
    assert place[1] == "30" and bytecode_place(serialized(b"ML\xefR")) == 4 + 32 + 8


@pytest.mark.parametrize("trees", [0, 200_000])  # the module of a large program is far from the first bytes
def test_a_serialized_export_is_read_as_its_module(module: bytes, trees: int, tmp_path: Path) -> None:
    path = tmp_path / "step.jax"
    path.write_bytes(serialized(module, trees))
    options: Any = {"mesh": "data=4", "annotate": {"%arg0": "P('data')"}}
    assert shardlog.run(path, **options).text() == shardlog.run(module, **options).text()
    path.write_bytes(serialized(module, trees)[:-1])
    with pytest.raises(ShardlogError, match="neither MLIR text nor MLIR bytecode") as raised:
        shardlog.run(path)
    assert raised.value.hint == "it begins as a file of jax.export does: has its end been cut?"


def test_hlo_is_read_with_its_shardings() -> None:
    text = shardlog.run(HLO).text()
    assert "stablehlo.tanh %arg0 {sdy.sharding" in text
    assert shardlog.run(HLO).partition().text().count("tensor<2x16xf32>") > 1


def test_hlo_may_begin_with_empty_lines() -> None:
    assert shardlog.run(f"\n {HLO}").text() == shardlog.run(HLO).text()


def test_optimized_hlo_is_refused() -> None:
    """Its tensors are the parts of a device, and its shardings those of whole tensors."""
    text = jax.jit(jnp.tanh).lower(jnp.ones(8)).compile().as_text()
    assert text is not None
    with pytest.raises(ShardlogError, match="this HLO is optimized") as refused:
        shardlog.run(text)
    assert "before_optimizations" in refused.value.hint


def test_hlo_that_xla_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.txt"
    path.write_text(HLO.replace("tanh", "foo"))
    assert cli.main(["run", str(path), "-o", str(tmp_path / "out.mlir")]) == 2
    message, hint = capsys.readouterr().err.splitlines()
    assert message.startswith(f"{path}: error: cannot read the HLO: ") and "foo" in message
    assert hint == "  hint: StableHLO, as MLIR text or bytecode, is read by every version"
    assert not (tmp_path / "out.mlir").exists()
