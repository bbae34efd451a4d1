"""The ops of a module as arrays: what the core reads from bytecode is what MLIR's bindings say."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import Any

import pytest
import shardlog
from hypothesis import given
from jaxlib.mlir import ir
from shardlog.errors import ShardlogError
from shardlog.importers.listing import Listing, bytecode, listing_of, through_bindings
from shardlog.importers.sources.text import make_context

from ..support import tools
from ..support.drawing import drawing
from ..support.generators.random_modules import modules

pytestmark = pytest.mark.core
core = tools.core("importers")

# A loop that uses what is outside of it, a function that nothing is known of, and a value with many uses.
LOOP = """
func.func private @other(tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %y, %x : tensor<4xf32>
    %2 = stablehlo.add %1, %1 : tensor<4xf32>
    %3 = stablehlo.multiply %2, %1 {my.note = "it"} : tensor<4xf32>
    stablehlo.return %i, %3 : tensor<i32>, tensor<4xf32>
  }
  %4 = stablehlo.constant dense<(1.0, 2.0)> : tensor<4xcomplex<f32>>
  %5 = stablehlo.real %4 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  return %0#1, %5 : tensor<4xf32>, tensor<4xf32>
}
"""
BLOCKS = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  "some.op"() ({
    "some.jump"(%x)[^bb1] : (tensor<4xf32>) -> ()
  ^bb1(%y: tensor<4xf32>):
    "some.end"(%y) : (tensor<4xf32>) -> ()
  }, {}) : () -> ()
  return %x : tensor<4xf32>
}
"""
LATER = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  "some.graph"() ({
    %0 = "some.op"(%1) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "some.op"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "some.end"() : () -> ()
  }) : () -> ()
  return %x : tensor<4xf32>
}
"""


def parsed(text: str) -> ir.Module:
    with make_context():
        return ir.Module.parse(text)


def renumbered(numbers: Any) -> Any:
    """Numbers of things in the order in which they first come."""
    found: dict[int, int] = {}
    return [found.setdefault(number, len(found)) for number in numbers.tolist()]


def check_listing(module: ir.Module) -> None:
    """The bytecode of a module says of what is read from it what the bindings say."""
    written = bytecode(module)
    with module.context:
        module = ir.Module.parse(written)
    ours, theirs = listing_of(module, written), through_bindings(module)
    assert ours.ops == theirs.ops
    for name in {field.name for field in fields(Listing)} - {"ops"}:
        mine, other = getattr(ours, name), getattr(theirs, name)
        if name in ("kinds", "types"):
            assert renumbered(mine) == renumbered(other)
        else:
            assert mine.tolist() == other.tolist(), name


@pytest.mark.parametrize("text", [LOOP, BLOCKS], ids=["loop", "blocks"])
def test_the_core_reads_what_bindings_say(text: str) -> None:
    check_listing(parsed(text))


@drawing(10)
@given(modules())
def test_random_modules(text: str) -> None:
    check_listing(parsed(text))


def test_types_are_those_of_the_values() -> None:
    module = parsed(LOOP)
    listing = listing_of(module)
    of = {str(listing.type_of(v)[0]): int(listing.types[v]) for v in range(len(listing.types))}
    assert len(of) == len(set(of.values())) == 4
    assert all(of[str(listing.type_of(v)[0])] == kind for v, kind in enumerate(listing.types.tolist()))


def test_what_a_signature_says_is_the_same_in_a_later_module() -> None:
    """Types and attributes have other numbers there."""

    def said(text: str) -> list[Any]:
        classes = shardlog.run(text).result.program.classes
        return [classes.facts(number) for number in range(len(classes.signatures.examples))]

    op = "stablehlo.transpose %x, dims = {} : (tensor<4x4xf32>) -> tensor<4x4xf32>"
    text = "func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {{\n {}\n return %0 : tensor<4x4xf32>\n}}"
    alone, other = "%0 = " + op.format("[0, 1]"), "%1 = " + op.format("[1, 0]")
    (first, *_), (behind, again, *_) = said(text.format(alone)), said(text.format(f"{other}\n{alone}"))
    assert again == first
    assert first["attribute_item"] == [("permutation", 0, 0), ("permutation", 1, 1)]
    assert behind["attribute_item"] == [("permutation", 0, 1), ("permutation", 1, 0)]


def test_a_value_that_comes_later_is_bad_input() -> None:
    with pytest.raises(ShardlogError, match=r"some\.op uses a value that is defined later"):
        shardlog.run(LATER)


def test_without_the_core_programs_are_read_through_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = shardlog.run(LOOP).text()
    monkeypatch.setitem(sys.modules, core.__name__, None)
    assert shardlog.run(LOOP).text() == expected


def test_bytecode_that_ends_early_is_an_error() -> None:
    data = bytecode(parsed(LOOP))
    whole, refused = core.read_bytecode(data), 0
    for end in range(0, len(data), 5):
        try:
            part = core.read_bytecode(data[:end])
        except ShardlogError:
            refused += 1
        else:  # what is left out stands behind the ops
            assert all((part[name] == whole[name]).all() for name in whole)
    assert refused > 10
