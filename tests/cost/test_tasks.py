"""The time of ops whose layouts are being chosen: what they take in the program that has the layouts."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.autosharding.automatic import plan
from shardlog.autosharding.options import AutoOptions
from shardlog.cost.machine import machine
from shardlog.cost.tasks import MachineTasks
from shardlog.importers.listing import listing_of
from shardlog.partition.facts.knowledge import RuleReader
from shardlog.rulebook.book import RuleBook

MACHINES = ("h100", "v5e", "cpu")
BOOK = RuleBook()
# Rows are in parts.
CHAIN = """func.func @main(%x: tensor<{0}x4096xf32>, %y: tensor<{0}x4096xf32>) -> tensor<{0}xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %y : tensor<{0}x4096xf32>
  %1 = stablehlo.tanh %0 : tensor<{0}x4096xf32>
  %2 = stablehlo.add %1, %y : tensor<{0}x4096xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<{0}x4096xf32>, tensor<f32>) -> tensor<{0}xf32>
  return %3 : tensor<{0}xf32>
}}
"""
PRODUCT = """func.func @main(%x: tensor<{0}x512xf32>, %w: tensor<512x4096xf32>) -> tensor<{0}x4096xf32> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<{0}x512xf32>, tensor<512x4096xf32>) -> tensor<{0}x4096xf32>
  return %0 : tensor<{0}x4096xf32>
}}
"""
STEP = """func.func @main(%x: tensor<2048x512xf32>, %w: tensor<512x2048xf32>, %v: tensor<2048x512xf32>)
    -> tensor<2048x512xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<2048x512xf32>, tensor<512x2048xf32>) -> tensor<2048x2048xf32>
  %1 = stablehlo.tanh %0 : tensor<2048x2048xf32>
  %2 = stablehlo.multiply %1, %0 : tensor<2048x2048xf32>
  %3 = stablehlo.dot_general %2, %v, contracting_dims = [1] x [0]
      : (tensor<2048x2048xf32>, tensor<2048x512xf32>) -> tensor<2048x512xf32>
  %4 = stablehlo.add %3, %x : tensor<2048x512xf32>
  return %4 : tensor<2048x512xf32>
}
"""


def summed(text: str, name: str, parts: int) -> float:
    """The seconds of all tasks of a program whose rows are in so many parts."""
    on, reader = machine(name), RuleReader(BOOK)
    tasks, module = MachineTasks(on, BOOK.traits), shardlog.run(text).result.module
    listing = listing_of(module)
    of = tasks.of(module, listing, reader)
    rows = int(text.split("tensor<")[1].split("x")[0])
    total, main = 0.0, listing.functions["main"]
    for number, op in enumerate(listing.ops):
        if op.name.startswith("stablehlo.") and listing.parents[number] == main:
            knowledge = reader.knowledge(op)
            local = tuple(
                None if shape is None else tuple(n // parts if n == rows else n for n in shape)
                for shape in knowledge.shapes
            )
            total += tasks.price(of(number), knowledge, local, False) / on.link.bandwidth
    return total


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("text", [CHAIN, PRODUCT], ids=["chain", "product"])
@pytest.mark.parametrize("parts", [1, 8])
def test_tasks_take_as_long_as_the_program_of_these_sizes(text: str, name: str, parts: int) -> None:
    here = shardlog.run(text.format(8192 // parts)).cost(topology=name).seconds
    assert summed(text.format(8192), name, parts) == pytest.approx(here, rel=0.02)


@pytest.mark.parametrize("name", MACHINES)
def test_the_sum_is_the_cost_of_the_program(name: str) -> None:
    found = plan(STEP, AutoOptions.of(topology=name, mesh="data=4"))
    assert found.sum == pytest.approx(found.seconds, rel=0.1)


def test_small_products_begin() -> None:
    # On a GPU a product has a fixed time, so more parts of a small one are hardly faster.
    whole, parts = (summed(PRODUCT.format(64), "h100", each) for each in (1, 8))
    assert parts < whole < 1.3 * parts
