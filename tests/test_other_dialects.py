"""Any dialect can have the rules of StableHLO: the same program gets the same shardings, is partitioned
alike, costs as much, and is explained in the same words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import shardlog
from hypothesis import given, note
from hypothesis import strategies as st
from jaxlib.mlir import ir

from .support import models
from .support.compare import differences
from .support.drawing import by_day, drawing
from .support.generators.random_modules import modules
from .support.oracle import context
from .support.renamed import renamed, renamed_rules

HOST, OTHER = "stablehlo.", "my."


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with all that the rules say about StableHLO, said of the dialect `my`."""
    path = tmp_path_factory.mktemp("rules") / "my.dl"
    path.write_text(renamed_rules(HOST, OTHER))
    return path


def assert_same(text: str, rules: Path, strategy: str = "user-priority") -> None:
    """The module of StableHLO and the same one of the dialect `my` get the same shardings."""
    result = shardlog.run(renamed(text, HOST, OTHER), rules=[rules], strategy=strategy, closed=False)
    expected = shardlog.run(text, strategy=strategy, closed=False)
    found = renamed(result.text(), OTHER, HOST)
    assert differences(found, expected.text()) == []
    turns = [(s.turns, s.changes) for s in result.stages]
    assert turns == [(s.turns, s.changes) for s in expected.stages]


@pytest.mark.parametrize("name", models.MODELS)
def test_models(name: str, rules: Path) -> None:
    assert_same(models.text(name, train=name != "decode"), rules)


@drawing(8)
@given(text=modules(), strategy=st.sampled_from(["user-priority", "op-priority", "aggressive"]))
def test_random_modules(text: str, strategy: str, rules: Path) -> None:
    note(text)
    assert_same(text, rules, strategy)


# ---- One fact for each family ------------------------------------------------------------------------------

FACTS = (
    'constant_op("my.constant").',
    'generated_op("my.iota").',
    'broadcast_op("my.broadcast_in_dim").',
    'keeps_constant_op("my.reshape").',
    'passes_op("my.reshape", "both").',
    'elementwise_op("my.add").',
    'elementwise_op("my.multiply").',
    'elementwise_op("my.maximum").',
    'pure_op("my.transpose").',
    'pure_inside_op("my.reduce").',
    'computes_nothing_op("my.return").',
)
LINES = """
my.reshape: i j -> (i j)
my.reshape: (i j) -> i j
my.broadcast_in_dim: -> i j
my.dot_general: i k, k j -> i j reduction={k}
"""
PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>},
                %b: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}]>},
                %w: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}]>},
                %v: tensor<128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>})
    -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) {
  // Constants for %a, which is sharded along rows, and for %b, which is sharded along columns.
  %c = stablehlo.constant dense<1.0> : tensor<8x16xf32>
  %i = stablehlo.iota dim = 0 : tensor<8x16xf32>
  %0 = stablehlo.multiply %c, %i : tensor<8x16xf32>
  %flat = stablehlo.reshape %0 : (tensor<8x16xf32>) -> tensor<128xf32>
  %k = stablehlo.reshape %flat : (tensor<128xf32>) -> tensor<8x16xf32>
  %a0 = stablehlo.add %a, %k : tensor<8x16xf32>
  %b0 = stablehlo.add %b, %k : tensor<8x16xf32>
  %s = stablehlo.constant dense<2.0> : tensor<f32>
  %fill = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
  %a1 = stablehlo.add %a0, %fill : tensor<8x16xf32>
  %b1 = stablehlo.add %b0, %fill : tensor<8x16xf32>
  // A reshape and a product compete for the axis "y".
  %d = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
     : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %r = stablehlo.reshape %v : (tensor<128xf32>) -> tensor<8x16xf32>
  %e = stablehlo.maximum %d, %r : tensor<8x16xf32>
  // Dead code.
  %dead = stablehlo.transpose %e, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %gone = "stablehlo.reduce"(%e, %s) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %sum = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8x16xf32>, tensor<f32>) -> tensor<f32>
  return %a1, %b1, %e, %k : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>
}
"""


@pytest.fixture
def run_with(tmp_path: Path) -> Callable[[Sequence[str]], str]:
    """The module that `PROGRAM`, in the dialect `my`, becomes with these facts; in StableHLO's names."""
    (tmp_path / "my.rules").write_text(LINES)

    def run(facts: Sequence[str]) -> str:
        (tmp_path / "my.dl").write_text("\n".join(facts))
        rules = [tmp_path / "my.dl", tmp_path / "my.rules"]
        return renamed(shardlog.run(renamed(PROGRAM, HOST, OTHER), rules=rules).text(), OTHER, HOST)

    return run


def test_facts_make_ops_what_those_of_stablehlo_are(run_with: Callable[[Sequence[str]], str]) -> None:
    assert differences(run_with(FACTS), shardlog.run(PROGRAM).text()) == []


@pytest.mark.parametrize("fact", FACTS)
def test_every_fact_matters(fact: str, run_with: Callable[[Sequence[str]], str]) -> None:
    assert differences(run_with([f for f in FACTS if f != fact]), shardlog.run(PROGRAM).text())


# ---- All the way: the program of each device, what it costs, and why ---------------------------------------

SMALL = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %w: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>},
                %v: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x16xf32>, tensor<8xf32>, tensor<4x16xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
     : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = stablehlo.tanh %0 : tensor<8x32xf32>
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0]
     : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %3 = stablehlo.negate %2 : tensor<8x16xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1]
     : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %5 = stablehlo.slice %a [2:6, 0:16] : (tensor<8x16xf32>) -> tensor<4x16xf32>
  %6 = stablehlo.transpose %5, dims = [1, 0] : (tensor<4x16xf32>) -> tensor<16x4xf32>
  %7 = stablehlo.transpose %6, dims = [1, 0] : (tensor<16x4xf32>) -> tensor<4x16xf32>
  return %3, %4, %7 : tensor<8x16xf32>, tensor<8xf32>, tensor<4x16xf32>
}
"""
LOOP = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %w: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<8x16xf32> {
  %first = stablehlo.constant dense<0> : tensor<i32>
  %last = stablehlo.constant dense<6> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %first, %x = %a) : tensor<i32>, tensor<8x16xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
       : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %3 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %3, %2 : tensor<i32>, tensor<8x16xf32>
  }
  return %0#1 : tensor<8x16xf32>
}
"""
PROGRAMS = {"small": SMALL, "loop": LOOP, "recommender": "", "transformer": ""}


def generic(text: str) -> str:
    """A module with all ops in the generic form: in it values of all dialects have numbers."""
    with context(), ir.Location.unknown():
        return str(ir.Module.parse(text).operation.get_asm(print_generic_op_form=True))


def answers(text: str, rules: Sequence[Path], *, keep: bool) -> dict[str, str]:
    """The partitioned program of a module, its collectives, what it costs, and why it has them: in
    StableHLO's names, and without the numbers of values, which differ where MLIR has names for them."""
    result = shardlog.run(generic(text), rules=rules)
    program = result.partition(keep_shardings=keep)
    cost, places = program.cost("cpu"), Counter[tuple[str, ...]]()
    for item in cost.items:  # the partitioner writes ops of StableHLO beside those of the user
        where = item.op, item.where, item.limited, item.serves
        for amount in ("times", "seconds", "flops", "bytes", "redundant"):
            places[tuple(part.replace(OTHER, HOST) for part in (amount, *where))] += getattr(item, amount)
    sums = [f"{' '.join(key)} {amount:.9g}" for key, amount in sorted(places.items())]
    found = {
        "program": generic(renamed(program.text(), OTHER, HOST)),
        "collectives": "\n".join(map(str, program.collectives)),
        "cost": "\n".join([f"{cost.seconds:.9g} {cost.flops} {cost.touched} {cost.peak} {cost.open}", *sums]),
        "conflicts": str(result.conflicts()),
        "why": "\n".join(str(program.why(number)) for number in range(len(program.collectives))[:8]),
    }
    return {
        name: " ".join(re.sub(r"%[\w#]+", "%", each.replace(OTHER, HOST)).split())
        for name, each in found.items()
    }


@pytest.mark.parametrize("keep", [True, False], ids=["as decided", "least bytes"])
@pytest.mark.parametrize("name", by_day(["small", "loop"], PROGRAMS))
def test_partition_cost_and_explanations(name: str, keep: bool, rules: Path) -> None:
    text = PROGRAMS[name] or models.text(name)
    assert answers(renamed(text, HOST, OTHER), [rules], keep=keep) == answers(text, [], keep=keep)


def test_an_elementwise_op_of_ones_own_is_computed_and_fused_as_others_are(tmp_path: Path) -> None:
    rules = tmp_path / "gated.dl"
    rules.write_text('elementwise_op("my.gated").')
    text = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                    %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %0 = stablehlo.add %a, %b : tensor<64x64xf32>
      %1 = "my.gated"(%0, %b) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %2 = stablehlo.add %1, %b : tensor<64x64xf32>
      return %2 : tensor<64x64xf32>
    }
    """
    for topology in ("cpu", "v5e"):
        gated = shardlog.run(text, rules=[rules]).partition().cost(topology)
        costs = shardlog.run(text.replace("my.gated", "stablehlo.multiply")).partition().cost(topology)
        own = next(item for item in gated.items if item.op == "my.gated")
        assert (own.flops, gated.seconds, gated.touched, gated.peak) == (
            *(32 * 64, costs.seconds, costs.touched),
            costs.peak,
        )
        none = shardlog.run(text, strict_shardy=True).partition(refuse=False).cost(topology)
        assert none.touched > gated.touched  # who knows nothing of the op
