"""Repeated layers share one entry where the same is said of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from shardlog.cli import main
from shardlog.explanations.answers.alike import groups, others, pattern

LAYERS = 12


def stack() -> str:
    """Layers that each gather their operand, which line 7 of the program computes."""
    tensor = "tensor<8x8xf32>"
    arguments = [
        f'%w{i}: {tensor} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"a"}}]>}} loc("w[{i}]")'
        for i in range(LAYERS)
    ]
    lines = [
        line
        for i in range(LAYERS)
        for line in (
            f'  %{2 * i} = stablehlo.tanh %w{i} : {tensor} loc("model.py":7:1)',
            f"  %{2 * i + 1} = stablehlo.dot_general %x, %{2 * i}, contracting_dims = [1] x [0]"
            f' : ({tensor}, {tensor}) -> {tensor} loc("model.py":8:1)',
        )
    ]
    results = ", ".join(f"%{2 * i + 1}" for i in range(LAYERS))
    types = ", ".join([tensor] * LAYERS)
    x = f'%x: {tensor} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"a"}}]>}}'
    head = f'sdy.mesh @mesh = <["a"=2]>\nfunc.func @main({", ".join([x, *arguments])}) -> ({types}) {{'
    return "\n".join([head, *lines, f"  return {results} : {types}", "}"])


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "stack.mlir"
    path.write_text(stack())
    return str(path)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out.splitlines()


def test_why(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "why", module, "model.py:7")
    assert sum(line.endswith('is sharded on "a"') for line in lines) == 1
    assert lines[-1] == "  so it is of %2 dim 1, %4 dim 1, %6 dim 1, %8 dim 1, ... (7 more)"
    full = shown(capsys, "why", module, "model.py:7", "--full")
    assert sum(line.endswith('is sharded on "a"') for line in full) == LAYERS


def test_why_not(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "why-not", module, "model.py:7", "--dim", "0", "--axis", "a")
    assert sum("is not sharded" in line for line in lines) == 1
    assert "so it is of %2 dim 0" in lines[-1]


def test_conflicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "stack.mlir"
    module.write_text(re.sub(r"tanh (%w\d+)", r"reverse \1, dims = [1]", stack()))
    lines = shown(capsys, "conflicts", str(module))
    assert lines[1].startswith(f"{LAYERS + 1} tensors must move")
    assert lines[2] == f"  {LAYERS} times 128 bytes, collective-permute: %arg1 : tensor<8x8xf32>"
    assert lines[5].startswith("      so do %arg2, %arg3, %arg4, ")


def test_what_if(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "what-if", module, "--drop", "w[*]")
    assert sum("before only" in line for line in lines) == 1


def test_patterns() -> None:
    assert pattern("%12#1 of @f#2:%3'1, params['layer_3'][2]") == pattern(
        "%1#0 of @f#1:%9'4, params['layer_0'][11]"
    )
    assert pattern("in_specs[0] of it") != pattern("in_specs[1] of it")
    assert pattern("tensor<8x16xf32>") != pattern("tensor<8x32xf32>")
    assert groups(["%1 a", "b", "%2 a"], str) == [["%1 a", "%2 a"], ["b"]]
    assert others(["%1", "%2", "%1"]) == "%1, %2"
