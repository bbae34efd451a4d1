"""Loops and branches of scf and affine carry shardings, and run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shardlog

X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
HEAD = """
shard.grid @g(shape = 2)
func.func @main(%x: tensor<8x8xf32>{more}) -> tensor<8x8xf32> {{
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %a = shard.shard %x to %s annotate_for_users : tensor<8x8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
"""
FOR = """  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%h = %a) -> (tensor<8x8xf32>) {
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %t = tensor.splat %f : tensor<8x8xf32>
    %q = arith.addf %h, %t : tensor<8x8xf32>
    scf.yield %q : tensor<8x8xf32>
  }
"""
SWAPPED = """  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%h = %a, %k = %b)
      -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    scf.yield %k, %h : tensor<8x8xf32>, tensor<8x8xf32>
  }
"""
AFFINE = """  %r = affine.for %i = 1 to 6 step 2 iter_args(%h = %a) -> tensor<8x8xf32> {
    %q = arith.addf %h, %a : tensor<8x8xf32>
    affine.yield %q : tensor<8x8xf32>
  }
"""
WHILE = """  %z = arith.constant 0 : i32
  %w:2 = scf.while (%i = %z, %h = %a) : (i32, tensor<8x8xf32>) -> (i32, tensor<8x8xf32>) {
    %n = arith.constant 4 : i32
    %k = arith.cmpi slt, %i, %n : i32
    scf.condition(%k) %i, %h : i32, tensor<8x8xf32>
  } do {
  ^bb0(%i: i32, %h: tensor<8x8xf32>):
    %o = arith.constant 1 : i32
    %j = arith.addi %i, %o : i32
    %q = arith.addf %h, %h : tensor<8x8xf32>
    scf.yield %j, %q : i32, tensor<8x8xf32>
  }
  %f = arith.sitofp %w#0 : i32 to f32
  %t = tensor.splat %f : tensor<8x8xf32>
  %r = arith.addf %w#1, %t : tensor<8x8xf32>
"""
IF = """  %r = scf.if %c -> (tensor<8x8xf32>) {
    %q = arith.negf %a : tensor<8x8xf32>
    scf.yield %q : tensor<8x8xf32>
  } else {
    scf.yield %a : tensor<8x8xf32>
  }
"""
SWITCH = """  %r = scf.index_switch %c -> tensor<8x8xf32>
  case 2 {
    %u = arith.negf %a : tensor<8x8xf32>
    scf.yield %u : tensor<8x8xf32>
  }
  case 5 {
    %u = arith.addf %a, %a : tensor<8x8xf32>
    scf.yield %u : tensor<8x8xf32>
  }
  default {
    scf.yield %a : tensor<8x8xf32>
  }
"""
TOSA_IF = """  %r = tosa.cond_if %c (%p = %a) : tensor<i1> (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%p: tensor<8x8xf32>):
    %q = tosa.sub %p, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    tosa.yield %q : tensor<8x8xf32>
  } else {
    tosa.yield %p : tensor<8x8xf32>
  }
"""
TOSA_BARE = """  %r = tosa.cond_if %c : tensor<1xi1> -> tensor<8x8xf32> {
    tosa.yield %a : tensor<8x8xf32>
  } else {
    %q = tosa.add %a, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    tosa.yield %q : tensor<8x8xf32>
  }
"""
TOSA_WHILE = """  %z = stablehlo.constant dense<0> : tensor<i32>
  %w:2 = tosa.while_loop (%i = %z, %h = %a) : (tensor<i32>, tensor<8x8xf32>)
      -> (tensor<i32>, tensor<8x8xf32>) {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %k = tosa.greater %n, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tosa.yield %k : tensor<i1>
  } do {
  ^bb0(%i: tensor<i32>, %h: tensor<8x8xf32>):
    %o = stablehlo.constant dense<1> : tensor<i32>
    %j = tosa.add %i, %o : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %q = tosa.add %h, %h : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    tosa.yield %j, %q : tensor<i32>, tensor<8x8xf32>
  }
  %r = tosa.negate %w#1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
"""
CASES: dict[str, tuple[str, str, list[Any], Any]] = {
    "for": (FOR, "", [X], X + 3),
    "affine": (AFFINE, "", [X], 4 * X),
    "while": (WHILE, "", [X], 16 * X + 4),
    "then": (IF, ", %c: i1", [X, np.asarray(True)], -X),
    "else": (IF, ", %c: i1", [X, np.asarray(False)], X),
    "tosa then": (TOSA_IF, ", %c: tensor<i1>", [X, np.asarray(True)], 0 * X),
    "tosa else": (TOSA_IF, ", %c: tensor<i1>", [X, np.asarray(False)], X),
    "tosa bare": (TOSA_BARE, ", %c: tensor<1xi1>", [X, np.asarray([False])], 2 * X),
    "tosa while": (TOSA_WHILE, "", [X], -16 * X),
    "case": (SWITCH, ", %c: i32", [X, np.asarray(5, np.int32)], 2 * X),
    "default": (SWITCH, ", %c: i32", [X, np.asarray(3, np.int32)], X),
    "swapped": (SWAPPED, ", %b: tensor<8x8xf32>", [X, 2 * X], 2 * X),
}


def program(body: str, more: str) -> str:
    result = "%r#0" if "%r:2" in body else "%r"
    body = body.replace("scf.index_switch %c", "scf.index_switch %k")
    cast = "  %k = arith.index_cast %c : i32 to index\n" if "%c: i32" in more else ""
    return HEAD.format(more=more) + cast + body + f"  return {result} : tensor<8x8xf32>\n}}\n"


@pytest.mark.parametrize("name", CASES)
def test_control_flow_runs_in_parts(name: str) -> None:
    import jax

    body, more, inputs, expected = CASES[name]
    run = shardlog.run(program(body, more), propagation="completion")
    found = run.partition().compile(jax.devices()[:2])(*inputs)
    np.testing.assert_allclose(np.asarray(jax.tree.leaves(found)[0]), expected, rtol=1e-6)


@pytest.mark.parametrize("traversal", ["backward", "forward", "backward-forward", "forward-backward"])
@pytest.mark.parametrize("name", CASES)
def test_completion_goes_through_control_flow(name: str, traversal: Any) -> None:
    body, more, *_ = CASES[name]
    run = shardlog.run(program(body, more), propagation="completion", traversal=traversal)
    results = run.text().partition("->")[2].partition("{\n")[0]
    if "while" in name and traversal == "backward":  # an op stands behind the loop
        return
    assert '[{"0"}, {}]' in results
    if name != "swapped":  # which needs other parts in each turn
        assert not run.partition(keep_shardings=True).sent


def test_why_names_the_loop() -> None:
    steps = str(shardlog.run(program(FOR, ""), propagation="completion").why("%q"))
    assert "by stablehlo.while at" in steps
    assert "operand 1 (d0, d1) -> result 1 (d0, d1)" in steps


def test_an_annotation_in_a_loop_is_read() -> None:
    body = FOR.replace("%q = arith", "%q0 = shard.shard %h to %s : tensor<8x8xf32>\n    %q = arith")
    text = shardlog.run(program(body, ""), propagation="completion").partition(form="shard").text()
    assert "sdy." not in text


@pytest.mark.parametrize("body", [FOR, AFFINE])
def test_an_annotation_of_what_a_loop_gives_is_read(body: str) -> None:
    """Not as that of the counter, which is the first result of the loop in StableHLO."""
    body += "  %t = shard.sharding @g split_axes = [[], [0]] : !shard.sharding\n"
    body += "  %r0 = shard.shard %r to %t : tensor<8x8xf32>\n"
    text = program(body, "").replace("return %r ", "return %r0 ")
    results = shardlog.run(text, propagation="completion").text().partition("->")[2].partition("{\n")[0]
    assert '[{}, {"0"}]' in results


def test_a_loop_that_gives_no_tensor_stays() -> None:
    body = """  %n = scf.for %i = %c0 to %c3 step %c1 iter_args(%h = %c1) -> (index) {
    %q = arith.addi %h, %h : index
    scf.yield %q : index
  }
  %r = arith.negf %a : tensor<8x8xf32>
"""
    assert "scf.for" in shardlog.run(program(body, "")).text()
