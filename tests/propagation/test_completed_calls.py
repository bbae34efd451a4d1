"""Completion goes through calls: a function has the annotations that it would have in place of its call."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest
import shardlog

T, W = "tensor<12x18xf32>", "tensor<18x6xf32>"
S = "shard.sharding @g split_axes"
GRID = "shard.grid @g(shape = 2x3)\n"
BODY = f"""
  %p = tosa.exp %a : ({T}) -> {T}
  %q = tosa.floor %p : ({T}) -> {T}
"""
CALLED = f"""
func.func private @inner(%a: {T}) -> {T} {{
  %q = tosa.floor %a : ({T}) -> {T}
  return %q : {T}
}}
func.func private @f(%a: {T}) -> {T} {{
  %p = tosa.exp %a : ({T}) -> {T}
  %q = func.call @inner(%p) : ({T}) -> {T}
  return %q : {T}
}}
"""
BEFORE = f"  %s = {S} = [[0], [1]] : !shard.sharding\n  %x = shard.shard %0 to %s : {T}\n"
BEHIND = f"  %s = {S} = [[], [0, 1]] : !shard.sharding\n  %y = shard.shard %r to %s : {T}\n"
INSIDE = f"  %t = {S} = [[1]] : !shard.sharding\n  %p1 = shard.shard %p to %t : {T}\n"
CASES = {"before": (BEFORE, "", ""), "behind": ("", BEHIND, ""), "inside": ("", "", INSIDE)}


def program(name: str, *, called: bool) -> str:
    """A chain of five ops, of which a function may have two, with an annotation before, in or behind it."""
    before, behind, inside = CASES[name]
    x, y, p = "%x" if before else "%0", "%y" if behind else "%r", "%p1" if inside else "%p"

    def annotated(text: str) -> str:
        head, exp, rest = text.partition(f"%p = tosa.exp %a : ({T}) -> {T}\n")
        return head + exp + inside + re.sub(r"%p\b", p, rest)

    main = f"  %r = func.call @f({x}) : ({T}) -> {T}\n"
    if not called:
        main = annotated(BODY).replace("%a", x).replace("%q", "%r")
    return (
        f"{GRID}func.func @main(%b: {T}) -> {T} {{\n  %0 = tosa.abs %b : ({T}) -> {T}\n{before}{main}{behind}"
        f"  %z = tosa.tanh {y} : ({T}) -> {T}\n  return %z : {T}\n}}\n"
        + (annotated(CALLED) if called else "")
    )


@pytest.mark.parametrize("traversal", ["backward", "forward", "backward-forward", "forward-backward"])
@pytest.mark.parametrize("name", CASES)
def test_a_called_function_is_completed_as_if_in_its_place(name: str, traversal: str) -> None:
    def shardings(*, called: bool) -> dict[str, str]:
        text = shardlog.run(
            program(name, called=called), propagation="completion", traversal=traversal
        ).text()
        found = re.findall(r'"(tosa\.\w+)"\(.*?(\[<@g.*?>\]|(?= :))', text)
        return dict(found)

    assert shardings(called=True) == shardings(called=False)


def test_the_first_call_decides_and_another_one_is_resharded_there() -> None:
    text = f"""{GRID}func.func @main(%b: {T}, %c: {T}) -> ({T}, {T}) {{
  %s = {S} = [[0]] : !shard.sharding
  %t = {S} = [[], [1]] : !shard.sharding
  %b1 = shard.shard %b to %s : {T}
  %c1 = shard.shard %c to %t : {T}
  %0 = func.call @f(%b1) : ({T}) -> {T}
  %1 = func.call @f(%c1) : ({T}) -> {T}
  %2 = shard.shard %1 to %t : {T}
  return %0, %2 : {T}, {T}
}}{CALLED}"""
    run = shardlog.run(text, propagation="completion", traversal="forward")
    done = run.text()
    assert done.count('"tosa.exp"') == 1 and re.search(r'"tosa.exp"\(%arg0\) .*\[\{"0"\}, \{\}\]', done)
    assert re.search(r'sdy.sharding_constraint %arg1 <@g, \[\{"0"\}, \{\}\]>', done)
    b, c = (np.linspace(-2, 2, 216, dtype=np.float32).reshape(12, 18) + i for i in range(2))
    found = run.partition(keep_shardings=True).compile(jax.devices()[:6])(b, c)
    for value, given in zip(jax.tree.leaves(found), (b, c), strict=True):
        np.testing.assert_array_equal(np.asarray(value), np.floor(np.exp(given)))


def test_why_leads_to_the_call_whose_annotation_decided() -> None:
    text = f"""{GRID}func.func @main(%b: {T}, %c: {T}) -> ({T}, {T}) {{
  %s = {S} = [[0]] : !shard.sharding
  %t = {S} = [[], [1]] : !shard.sharding
  %b1 = shard.shard %b to %s annotate_for_users : {T}
  %c1 = shard.shard %c to %t annotate_for_users : {T}
  %0 = func.call @f(%b1) : ({T}) -> {T}
  %1 = func.call @f(%c1) : ({T}) -> {T}
  return %0, %1 : {T}, {T}
}}{CALLED}"""
    for traversal, decides in (("backward-forward", "annotated %c1 <"), ("forward", "annotated %b1 <")):
        run = shardlog.run(text, propagation="completion", traversal=traversal)
        assert all(decides in str(run.why(value)) for value in ("%0", "%1")), traversal


def test_an_op_with_a_reduction_and_scalars_in_a_function() -> None:
    text = f"""{GRID}func.func @main(%b: {T}, %w: {W}) -> tensor<12x6xf32> {{
  %c = arith.constant 2.0 : f32
  %s = {S} = [[], [1]] : !shard.sharding
  %b1 = shard.shard %b to %s : {T}
  %0:2 = func.call @f(%c, %b1, %w) : (f32, {T}, {W}) -> (f32, tensor<12x6xf32>)
  return %0#1 : tensor<12x6xf32>
}}
func.func private @f(%c: f32, %b: {T}, %w: {W}) -> (f32, tensor<12x6xf32>) {{
  %e = tensor.empty() : tensor<12x6xf32>
  %z = linalg.fill ins(%c : f32) outs(%e : tensor<12x6xf32>) -> tensor<12x6xf32>
  %r = linalg.matmul ins(%b, %w : {T}, {W}) outs(%z : tensor<12x6xf32>) -> tensor<12x6xf32>
  return %c, %r : f32, tensor<12x6xf32>
}}
"""
    run = shardlog.run(text, propagation="completion")
    assert re.search(
        r'%arg1: tensor<18x6xf32> \{sdy.sharding = #sdy.sharding<@g, \[\{"1"\}, \{\}\]>', run.text()
    )
    b, w = np.ones((12, 18), np.float32), np.ones((18, 6), np.float32)
    (found,) = jax.tree.leaves(run.partition().compile(jax.devices()[:6])(b, w))
    np.testing.assert_array_equal(np.asarray(found), np.full((12, 6), 20.0))


def test_why_leads_out_of_the_function_to_the_annotation() -> None:
    steps = str(shardlog.run(program("behind", called=True), propagation="completion").why("%b"))
    names = [*dict.fromkeys(re.findall(r"by (tosa\.\w+) at", steps))]  # of each axis
    assert names == ["tosa.abs", "tosa.exp", "tosa.floor"] and "annotated %r " in steps
