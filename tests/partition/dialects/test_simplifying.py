"""Programs with fewer collectives, and those that stay as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardlog
from shardlog.cli import main
from shardlog.errors import ShardlogError
from shardlog.importers.sources.text import Text, parse_module
from shardlog.partition.dialects.simplifying import rewrites, simplify
from shardlog.program.mlir.modules import operations_in
from shardlog.rulebook.book import RuleBook

T = "tensor<6xf32>"


def program(*lines: str, arguments: str = f"%x: {T}, %y: {T}", result: str = T) -> str:
    """A program on a grid of 2x3 whose last line gives what it returns."""
    body = "\n".join(f"  {line}" for line in lines)
    last = lines[-1].split()[0]
    return (
        f"shard.grid @g(shape = 2x3)\nfunc.func @main({arguments}) -> {result} {{\n{body}\n"
        f"  return {last} : {result}\n}}\n"
    )


def reduced(name: str, of: str, axes: str = "[0]", kind: str = "sum") -> str:
    return f"{name} = shard.all_reduce {of} on @g grid_axes = {axes} reduction = {kind} : {T} -> {T}"


def gathered(name: str, of: str, axes: str = "[1]") -> str:
    return f"{name} = shard.all_gather {of} on @g grid_axes = {axes} gather_axis = 0 : {T} -> tensor<18xf32>"


def done(text: str, *only: str) -> tuple[dict[str, int], list[str]]:
    """The rewrites that were done, and the ops that are left."""
    module = parse_module(Text(text.encode(), "x"))
    counts = simplify(module, RuleBook(), only)
    left = [
        op.name + (f" {list(op.attributes['grid_axes'])}" if "grid_axes" in op.attributes else "")
        for op in operations_in(module)
        if op.name not in ("sdy.mesh", "func.func", "func.return")
    ]
    return counts, left


SLICED = "%1 = shard.all_slice %0 on @g grid_axes = [1] slice_axis = 0"
CASES = {
    "no-axes": (program(reduced("%0", "%x", "[]")), []),
    "slice-of-gather": (program(gathered("%0", "%x"), f"{SLICED} : tensor<18xf32> -> {T}"), []),
    "gather-of-slice": (
        program(
            reduced("%0", "%x", "[1, 0]"),
            f"{SLICED} : {T} -> tensor<2xf32>",
            f"%2 = shard.all_gather %1 on @g grid_axes = [1] gather_axis = 0 : tensor<2xf32> -> {T}",
        ),
        ["shard.all_reduce [1, 0]"],
    ),
    "all-reduce-folder": (
        program(reduced("%0", "%x", "[1]", "max"), reduced("%1", "%0", "[0]", "max")),
        ["shard.all_reduce [1, 0]"],
    ),
    "slice-of-all-reduce": (
        program(reduced("%0", "%x", "[1]"), f"{SLICED} : {T} -> tensor<2xf32>", result="tensor<2xf32>"),
        ["shard.reduce_scatter [1]"],
    ),
    "slice-of-larger-all-reduce": (
        program(
            reduced("%0", "%x", "[1, 0]", "max"),
            f"{SLICED} : {T} -> tensor<2xf32>",
            result="tensor<2xf32>",
        ),
        ["shard.reduce_scatter [1]", "shard.all_reduce [0]"],
    ),
    "all-reduce-reassociation": (
        program(reduced("%0", "%x"), reduced("%1", "%y"), f"%2 = arith.addf %0, %1 : {T}"),
        ["arith.addf", "shard.all_reduce [0]"],
    ),
    "reduce-scatter-reassociation": (
        program(
            *(
                f"%{i} = shard.reduce_scatter {v} on @g grid_axes = [1] reduction = min scatter_dim = 0 "
                f": {T} -> tensor<2xf32>"
                for i, v in enumerate(("%x", "%y"))
            ),
            "%2 = tosa.minimum %0, %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>",
            result="tensor<2xf32>",
        ),
        ["tosa.minimum", "shard.reduce_scatter [1]"],
    ),
    "all-gather-move-down": (
        program(
            gathered("%0", "%x"),
            "%1 = tosa.exp %0 : (tensor<18xf32>) -> tensor<18xf32>",
            "%2 = math.absf %1 : tensor<18xf32>",
            result="tensor<18xf32>",
        ),
        ["tosa.exp", "math.absf", "shard.all_gather [1]"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rewrite_is_done_alone_and_among_all(name: str) -> None:
    text, left = CASES[name]
    counts, found = done(text, name)
    assert set(counts) == {name} and found == left
    assert done(text)[1] == left
    others = [other for other in rewrites() if other != name]
    assert name not in done(text, *others)[0]


@pytest.mark.parametrize("name", CASES)
def test_a_rewrite_keeps_the_results(name: str, tmp_path: Path) -> None:
    (tmp_path / "before.mlir").write_text(CASES[name][0])
    assert main(["simplify", str(tmp_path / "before.mlir"), "-o", str(tmp_path / "after.mlir")]) == 0
    given = (
        np.random.default_rng(0).normal(size=(2, 6, 6)).astype(np.float32)
    )  # of two arguments, six devices

    def result(file: str) -> Any:
        (result,) = shardlog.run(tmp_path / file).partition().compile()(*given)
        return result

    np.testing.assert_allclose(result("before.mlir"), result("after.mlir"), rtol=1e-5)


def test_every_rewrite_has_a_case() -> None:
    assert list(CASES) == rewrites()


UNCHANGED = {
    "another kind": program(reduced("%0", "%x"), reduced("%1", "%0", "[1]", "max")),
    "a smaller all-reduce": program(
        reduced("%0", "%x", "[1]"),
        f"{SLICED.replace('[1]', '[0, 1]')} : {T} -> tensor<1xf32>",
        result="tensor<1xf32>",
    ),
    "another use of a larger all-reduce": program(
        reduced("%0", "%x", "[0, 1]"),
        f"{SLICED} : {T} -> tensor<2xf32>",
        f"%2 = arith.addf %0, %0 : {T}",
    ),
    "the same axis": program(reduced("%0", "%x"), reduced("%1", "%0")),
    "another use": program(reduced("%0", "%x"), reduced("%1", "%0", "[1]"), f"%2 = arith.subf %1, %0 : {T}"),
    "no step of it": program(reduced("%0", "%x"), reduced("%1", "%y"), f"%2 = arith.mulf %0, %1 : {T}"),
    "other axes": program(reduced("%0", "%x"), reduced("%1", "%y", "[1]"), f"%2 = arith.addf %0, %1 : {T}"),
    "a reduced dimension": program(
        gathered("%0", "%x"),
        "%1 = tosa.reduce_sum %0 {axis = 0 : i32} : (tensor<18xf32>) -> tensor<1xf32>",
        result="tensor<1xf32>",
    ),
    "parts of tensors that differ": program(
        f"%0 = shard.all_slice %x on @g grid_axes = [1] slice_axis = 0 : {T} -> tensor<2xf32>",
        f"%1 = shard.all_gather %0 on @g grid_axes = [1] gather_axis = 0 : tensor<2xf32> -> {T}",
    ),
    "sent and received": program(
        f"%0 = shard.send %x on @g grid_axes = [] destination = [] : ({T}) -> {T}",
        f"%1 = shard.recv %0 on @g grid_axes = [] source = [] : ({T}) -> {T}",
    ),
    "another type of elements": program(
        f"%0 = shard.all_reduce %x on @g grid_axes = [0] : {T} -> tensor<6xf64>",
        f"%1 = shard.all_reduce %y on @g grid_axes = [0] : {T} -> tensor<6xf64>",
        "%2 = arith.addf %0, %1 : tensor<6xf64>",
        "%3 = shard.all_reduce %2 on @g grid_axes = [] : tensor<6xf64> -> tensor<6xf32>",
        result=T,
    ),
    "the number of the device": program(
        "%0 = stablehlo.partition_id : tensor<ui32>",
        "%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<ui32>) -> tensor<6xui32>",
        "%2 = shard.all_slice %1 on @g grid_axes = [1] slice_axis = 0 : tensor<6xui32> -> tensor<2xui32>",
        "%3 = shard.all_gather %2 on @g grid_axes = [1] gather_axis = 0 : tensor<2xui32> -> tensor<6xui32>",
        result="tensor<6xui32>",
    ),
    "other integers": program(
        "%0 = shard.all_reduce %i on @g grid_axes = [0] reduction = max : tensor<6xi32> -> tensor<6xi32>",
        "%1 = shard.all_reduce %j on @g grid_axes = [0] reduction = max : tensor<6xi32> -> tensor<6xi32>",
        "%2 = arith.maxui %0, %1 : tensor<6xi32>",
        arguments="%i: tensor<6xi32>, %j: tensor<6xi32>",
        result="tensor<6xi32>",
    ),
    "an unknown combination": program(
        reduced("%0", "%x", "[0]", "generic"), reduced("%1", "%0", "[1]", "generic")
    ),
}


@pytest.mark.parametrize("why", UNCHANGED)
def test_it_stays(why: str) -> None:
    assert done(UNCHANGED[why])[0] == {}


def test_the_order_of_the_axes_of_a_reduction_does_not_matter() -> None:
    both = program(
        reduced("%0", "%x", "[0, 1]"), reduced("%1", "%y", "[1, 0]"), f"%2 = arith.addf %0, %1 : {T}"
    )
    assert done(both)[0] == {"all-reduce-reassociation": 1}
    part = f"%1 = shard.all_slice %0 on @g grid_axes = [1, 0] slice_axis = 0 : {T} -> tensor<1xf32>"
    sliced = program(reduced("%0", "%x", "[0, 1]"), part, result="tensor<1xf32>")
    assert done(sliced)[1] == ["shard.reduce_scatter [1, 0]"]
    scattered = [
        f"%{i} = shard.reduce_scatter {v} on @g grid_axes = {axes} scatter_dim = 0 : {T} -> tensor<1xf32>"
        for i, (v, axes) in enumerate((("%x", "[0, 1]"), ("%y", "[1, 0]")))
    ]
    parts = program(*scattered, "%2 = arith.addf %0, %1 : tensor<1xf32>", result="tensor<1xf32>")
    assert done(parts)[0] == {}


def test_every_branch_is_looked_at() -> None:
    branch = f"""
      %a = shard.all_reduce %x on @g grid_axes = [0] : {T} -> {T}
      %b = shard.all_reduce %a on @g grid_axes = [1] : {T} -> {T}
      scf.yield %b : {T}"""
    text = program(
        f"%r = scf.if %c -> ({T}) {{{branch}\n    }} else {{{branch}\n    }}", arguments=f"%x: {T}, %c: i1"
    )
    counts, left = done(text)
    assert counts == {"all-reduce-folder": 2}
    assert left.count("shard.all_reduce [0, 1]") == 2


def test_what_is_removed_is_removed_in_every_branch() -> None:
    """Devices may take different branches, and call the same collectives there."""
    both = f"%a = shard.all_reduce %x on @g grid_axes = [0] : {T} -> {T}"
    last = "%b = shard.all_reduce {} on @g grid_axes = [1] : " + f"{T} -> {T}\n scf.yield %b : {T}"
    text = program(
        f"%r = scf.if %c -> ({T}) {{\n{both}\n{last.format('%a')}\n    }} else {{\n"
        f"{both}\n%t = tosa.exp %a : ({T}) -> {T}\n{last.format('%t')}\n    }}",
        arguments=f"%x: {T}, %c: i1",
    )
    assert done(text)[0] == {}
    assert done(text.replace("[1]", "[]"))[0] == {"no-axes": 2}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "program.mlir"
    module.write_text(CASES["all-reduce-folder"][0])
    assert main(["simplify", str(module)]) == 0
    written = capsys.readouterr().out
    assert f"shard.all_reduce %arg0 on @g grid_axes = [1, 0] reduction = max : {T} -> {T}" in written
    out = tmp_path / "out.mlir"
    assert main(["simplify", str(module), "--json", "-o", str(out), "--dialect-version", "19"]) == 0
    assert json.loads(capsys.readouterr().out) == {"rewrites": {"all-reduce-folder": 1}}
    assert "mesh.all_reduce %arg0 on @g mesh_axes = [1, 0] reduction = <max>" in out.read_text()
    assert main(["simplify", str(module), "--rewrite", "all-reduce"]) == 2
    assert "did you mean all-reduce-folder" in capsys.readouterr().err


def test_arguments_are_the_same_where_the_user_says_so() -> None:
    text = program(
        f"%0 = shard.all_slice %x on @g grid_axes = [1] slice_axis = 0 : {T} -> tensor<2xf32>",
        f"%1 = shard.all_gather %0 on @g grid_axes = [1] gather_axis = 0 : tensor<2xf32> -> {T}",
    )
    module = parse_module(Text(text.encode(), "x"))
    assert simplify(module, RuleBook()) == {}
    assert simplify(module, RuleBook(), same_arguments=True) == {"gather-of-slice": 1}


def test_collectives_of_whole_tensors_are_those_of_each_device(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The RFC's collectives take whole tensors, whose types say how they are sharded."""
    partial, whole = "tensor<6xf32, #mesh.shard<[[], [0]]>>", "tensor<6xf32>"
    rows = "tensor<6xf32, #mesh.shard<[[0]]>>"
    path = tmp_path / "rfc.mlir"
    path.write_text(f"""
mesh.cluster @c(rank = 1, dim_sizes = [2])
func.func @main(%x: {partial}, %y: {partial}) -> {rows} attributes {{mesh_cluster = @c}} {{
  %0 = mesh.all_reduce %x {{reduction = "sum", mesh_axis = [0]}} : {partial} -> {whole}
  %1 = mesh.all_reduce %y {{reduction = "sum", mesh_axis = [0]}} : {partial} -> {whole}
  %2 = mhlo.add %0, %1 : {whole}
  %3 = mesh.local_split %2 {{mesh_axis = [[0]], tensor_axis = [0]}} : {whole} -> {rows}
  return %3 : {rows}
}}
""")
    assert main(["simplify", str(path), "--json", "-o", str(tmp_path / "out.mlir")]) == 0
    counts = json.loads(capsys.readouterr().out)["rewrites"]
    assert counts == {"all-reduce-reassociation": 1, "slice-of-all-reduce": 1}
    lines = [line.strip() for line in (tmp_path / "out.mlir").read_text().splitlines()]
    (sent,) = (line for line in lines if "shard.reduce_scatter" in line)
    assert sent.endswith("grid_axes = [0] scatter_dim = 0 : tensor<6xf32> -> tensor<3xf32>")
    assert not any("all_reduce" in line or "all_slice" in line for line in lines)


def test_a_program_without_collectives_says_that_it_is_one_of_each_device(tmp_path: Path) -> None:
    before, after = tmp_path / "before.mlir", tmp_path / "after.mlir"
    before.write_text(CASES["no-axes"][0])
    assert main(["simplify", str(before), "-o", str(after)]) == 0
    run = shardlog.run(after)
    assert "%arg0: tensor<6x6xf32>" in run.text()
    assert "shard.device_of = @g" in run.partition(form="shard").text()
    with pytest.raises(ShardlogError, match="no grid @h"):
        shardlog.run(after.read_text().replace("device_of = @g", "device_of = @h"))
