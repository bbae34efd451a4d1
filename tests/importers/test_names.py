"""Names of meshes, axes and functions are any text: they come out as they went in, and mean nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import shardlog
from shardlog import cli

from ..support import oracle
from ..support.compare import differences

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


def test_what_is_no_text_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    module = tmp_path / "module.mlir"
    module.write_text("func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }")
    half = "\udcff"  # the byte FF on a command line
    for arguments in (
        ["why", "%x" + half],
        ["query", f'value(v, "{half}")'],
        ["what-if", "--drop", half],
        ["run", "--annotate", f'%x=[{{"{half}"}}]'],
        ["run", "--mesh", f'"{half}"=2'],
        ["run", "--mesh", '"\\FF"=2'],
    ):
        command, *rest = arguments
        assert cli.main([command, str(module), *rest]) == 2
        assert "UTF-8" in capsys.readouterr().err
    options: dict[str, Any]
    for options in ({"annotate": [f'%arg0=[{{"{half}"}}]'], "mesh": "a=2"}, {"mesh": f'"{half}"=2'}):
        with pytest.raises(shardlog.ShardlogError, match="UTF-8"):
            shardlog.run(module, **options)
