"""Names of meshes, axes and functions are any text: they come out as they went in, and mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import shardlog
from shardlog import cli

from . import oracle
from .compare import differences

# As MLIR writes them: a quote and a comma, an escaped byte, a backslash, a space, nothing, a sub-axis.
NAMES = (r"a\22, \22b", r"a\00b", r"\\", "my axis", "é", "", "0:(1)2", "x, ?")
MODULE = """\
sdy.mesh @"{mesh}" = <["{axis}"=4, "y"=2]>
func.func @main(%arg0: tensor<8x8xf32>
    {{sdy.sharding = #sdy.sharding<@"{mesh}", [{{"{axis}":(1)2, ?}}, {{?}}]>}})
    -> tensor<8x8xf32> {{
  %0 = call @"{mesh}f"(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@"{mesh}", [{{?}}, {{"{axis}", ?}}]>]
      out_shardings=[<@"{mesh}", [{{?}}, {{"{axis}", ?}}]>]
      manual_axes={{"{axis}"}} (%arg1: tensor<8x2xf32>) {{
    sdy.return %arg1 : tensor<8x2xf32>
  }} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}}
func.func private @"{mesh}f"(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {{
  %0 = stablehlo.abs %arg0
      {{sdy.sharding = #sdy.sharding_per_value<[<@"{mesh}", [{{?}}, {{"y", ?}}]>]>}} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}
"""


def module(name: str) -> str:
    return MODULE.format(mesh=name or "mesh", axis=name)  # a symbol is never empty


@pytest.mark.parametrize("name", NAMES)
def test_as_shardy_has_them(name: str) -> None:
    written = shardlog.run(module(name)).text()
    assert differences(written, oracle.propagate(module(name))) == []
    assert shardlog.run(written).text() == written


@pytest.mark.parametrize("name", NAMES)
def test_in_explanations(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page, expected = (str(tmp_path / n) for n in ("m.mlir", "report.html", "expected.txt"))
    Path(path).write_text(module(name))
    commands = (
        ["why", path, "%0"],
        ["conflicts", path],
        ["report", path, "-o", page],
        ["query", path, "mesh(v, m)"],
    )
    for arguments in (*commands, ["expect", path, expected, "--update"], ["expect", path, expected]):
        assert cli.main(arguments) == 0
    capsys.readouterr()
