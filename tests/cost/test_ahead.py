"""Programs compiled ahead of time, and targets that are none."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.cost import targets
from shardlog.cost.hlo import hlo_collectives, hlo_cycles
from shardlog.cost.targets import read_target
from shardlog.errors import ShardlogError

from ..support.mlp import MLP


def check_compiled(target: str) -> None:
    compiled = shardlog.run(MLP).partition().compile_ahead(target)
    arguments = 4 * (4 * 16 + 16 * 8 + 8 * 16)
    assert compiled.devices == 8
    assert (
        compiled.memory.total
        == compiled.memory.arguments + compiled.memory.results + compiled.memory.temporary
    )
    if target == "cpu":  # others pad what is so small
        assert (compiled.memory.arguments, compiled.memory.results) == (arguments, 4 * 4 * 16)
    (kept,) = compiled.collectives
    assert (kept.kind, kept.count, kept.bytes) == ("all-reduce", 1, 384)
    assert (kept.compiled_count, kept.compiled_bytes) == (1, 384)


def test_for_cpu() -> None:
    check_compiled("cpu")


@pytest.mark.tpu
def test_for_tpu() -> None:
    check_compiled("tpu:v5e:2x4")


@pytest.mark.parametrize("target", ["cpu", pytest.param("tpu:v5e:2x4", marks=pytest.mark.tpu)])
def test_calls_that_a_target_does_not_know(target: str) -> None:
    module = """
      func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
        %0 = stablehlo.custom_call @lapack_of_others(%x) {api_version = 4 : i32}
            : (tensor<8xf32>) -> tensor<8xf32>
        return %0 : tensor<8xf32>
      }"""
    with pytest.raises(ShardlogError, match="lapack_of_others") as error:
        shardlog.run(module).partition().compile_ahead(target)
    assert f"lowering_platforms=('{target.partition(':')[0]}',)" in error.value.hint


@pytest.mark.tpu
def test_turns_of_loops_for_tpu() -> None:
    scanned = """
      sdy.mesh @mesh = <["x"=8]>
      func.func @main(%x: tensor<64x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                      %w: tensor<1024x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
          -> tensor<64x1024xf32> {
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<64x1024xf32> cond {
          %end = stablehlo.constant dense<5> : tensor<i32>
          %1 = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %1 : tensor<i1>
        } do {
          %one = stablehlo.constant dense<1> : tensor<i32>
          %1 = stablehlo.add %i, %one : tensor<i32>
          %2 = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0]
              : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32>
          %3 = stablehlo.tanh %2 : tensor<64x1024xf32>
          stablehlo.return %1, %3 : tensor<i32>, tensor<64x1024xf32>
        }
        return %0#1 : tensor<64x1024xf32>
      }"""
    kept = shardlog.run(scanned).partition().compile_ahead("tpu:v5e:2x4").collectives
    assert sum(each.compiled_count for each in kept) == sum(each.count for each in kept) == 5


@pytest.mark.tpu
def test_collective_matmul_for_tpu() -> None:
    sharded = "{{sdy.sharding = #sdy.sharding<@mesh, [{}]>}}"
    rows, columns = (sharded.format(dims) for dims in ('{"x"}, {}', '{}, {"x"}'))
    types = "tensor<8192x4096xbf16>", "tensor<4096x16384xbf16>", "tensor<8192x16384xbf16>"
    module = (
        'sdy.mesh @mesh = <["x"=8]>\n'
        f"func.func @main(%x: {types[0]} {rows}, %w: {types[1]} {columns}) -> {types[2]} {{\n"
        "  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]"
        f" : ({types[0]}, {types[1]}) -> {types[2]}\n  return %0 : {types[2]}\n}}\n"
    )
    partitioned = shardlog.run(module).partition(topology="h100", collective_matmul=True)
    (kept,) = partitioned.compile_ahead("tpu:v5e:2x4").collectives
    assert (kept.kind, kept.count, kept.compiled_count) == ("collective-permute", 7, 7)


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["a100", "h100", "h200", "b200"])
def test_for_gpus(name: str) -> None:
    check_compiled(f"cuda:{name}")


@pytest.mark.parametrize(
    ("target", "said", "hint"),
    [
        ("gpu:h100", "there is no target gpu:h100", "expected as in cpu, tpu:v5e:2x4 or cuda:h100"),
        ("cuda:h10", "there is no target cuda:h10", "did you mean cuda:h100?"),
        ("tpu:v5e", "a slice needs a shape", "tpu:v5e:2x4"),
        ("tpu:v5e:2by4", "2by4 is not the shape of a slice", "tpu:v5e:2x4"),
        ("tpu:v5e:2x4", "the compiler for tpu is not installed", r"pip install 'shardlog\[tpu\]'"),
        ("cpu", "the compiler for cpu is not installed", r"pip install 'shardlog\[jax\]'"),
        ("cuda:h100", "the compiler for cuda is not installed", r"pip install 'shardlog\[cuda\]'"),
    ],
)
def test_targets_that_are_none(target: str, said: str, hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "find_spec", lambda name: None)
    with pytest.raises(ShardlogError, match=said) as error:
        read_target(target)
    assert hint.replace("\\", "") in error.value.hint


def test_cycles_of_loops_count_their_turns() -> None:
    body = '  %x = f32[8]{0} negate(%p), backend_config={"window_config":{"estimated_cycles":"20"}}'
    turns = 'backend_config={"known_trip_count":{"n":"3"}}'
    loop = f"  %w = f32[8]{{0}} while(%x), condition=%cond, body=%body, {turns}"
    lines = ["%body (p: f32[8]) -> f32[8] {", body, "}", "ENTRY %main () -> f32[8] {", body, loop, "}"]
    assert hlo_cycles("\n".join(lines)) == 4 * 20


@pytest.mark.parametrize(
    ("condition", "start", "step", "turns"),
    [
        ("compare(%i, %end), direction=LT", 0, "add(%i, %by)", 3),
        ("compare(%end, %i), direction=GE", 0, "add(%by, %i)", 4),
        ("compare(%i, %end), direction=GT", 19, "subtract(%i, %by)", 4),
        ("compare(%i, %end), direction=NE", 0, "add(%i, %by)", 3),
        ("compare(%i, %i), direction=LT", 0, "add(%i, %by)", 1),  # nobody knows
        ("compare(%i, %end), direction=LT", 0, "add(%i, %i)", 1),
        ("compare(%i, %end), direction=LT", 0, "multiply(%i, %by)", 1),
    ],
)
def test_turns_are_counted_where_xla_does_not_say_them(
    condition: str, start: int, step: str, turns: int
) -> None:
    taken = ["  %p = (s32[]{:T(128)}, f32[8]{0}) parameter(0)"]
    taken += ["  %i = s32[]{:T(128)} get-tuple-element(%p), index=0"]
    lines = ["%cond (p: (s32[], f32[8])) -> pred[] {", *taken, "  %end = s32[]{:T(128)} constant(9)"]
    lines += [f"  ROOT %lt = pred[]{{:T(512)}} {condition}", "}"]
    lines += ["%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {", *taken, "  %by = s32[] constant(3)"]
    lines += ["  %x = f32[8]{0} get-tuple-element(%p), index=1", f"  %next = s32[]{{:T(128)}} {step}"]
    lines += ["  %sum = f32[8]{0} all-reduce(%x), replica_groups={{0,1}}, to_apply=%add"]
    lines += ["  ROOT %both = (s32[], f32[8]{0}) tuple(%next, /*index=1*/%sum)", "}"]
    lines += ["ENTRY %main (y: f32[8]) -> (s32[], f32[8]) {", f"  %zero = s32[] constant({start})"]
    lines += ["  %first = s32[]{:T(128)} copy(%zero)", "  %y = f32[8]{0} parameter(0)"]
    lines += ["  %given = (s32[], f32[8]{0}) tuple(%first, %y)"]
    lines += ["  ROOT %loop = (s32[], f32[8]{0}) while(%given), condition=%cond, body=%body", "}"]
    assert hlo_collectives("\n".join(lines)) == {"all-reduce": (turns, 32 * turns)}


def test_collectives_that_start_and_end() -> None:
    lines = [
        "ENTRY %main () -> f32[8] {",
        "  %a = (f32[2]{0}, f32[8]{0}) all-gather-start(%x), replica_groups={{0,1,2,3}}",
        "  %b = f32[8]{0} all-gather-done(%a)",
        "  %c = f32[8]{0} all-reduce-start(%b), replica_groups={{0,1,2,3}}",
        "  %d = (f32[8]{0}, f32[8]{0}, u32[], u32[]) collective-permute-start(%c)",
        "  %i = ((f32[8]{0:T(8)}), f32[8]{0:T(8)}, u32[]) all-reduce-start(%d), replica_groups={{0,1}}",
        "  %e = ((f32[8]{0}, f32[8]{0}), (f32[2]{0}, f32[2]{0})) reduce-scatter-start(%d, %d), "
        "replica_groups={{0,1,2,3}}",
        "  %f = f32[4]{0} fusion(%x), calls=%first",
        "  %g = f32[4]{0} fusion(%f), calls=%second",
        "}",
    ]
    # Each goes on with what the one before it began.
    for name in ("first", "second"):
        chain = 'channel_id=7, replica_groups={{0,1}}, frontend_attributes={chain_id="0"}'
        lines += [f"%{name} () -> f32[4] {{", f"  %h = f32[4]{{0}} all-to-all(%x), {chain}", "}"]
    assert hlo_collectives("\n".join(lines)) == {
        "all-reduce": (2, 48 + 32),
        "all-gather": (1, 24),
        "reduce-scatter": (1, 48),
        "all-to-all": (1, 8),
        "collective-permute": (1, 32),
    }


def test_sums_of_which_each_keeps_a_part_are_scattered() -> None:
    lines = ["%all-reduce-scatter.3.clone (p: f32[8]) -> f32[2] {"]
    lines += ["  %a = f32[8]{0} all-reduce(%p), replica_groups={{0,1,2,3}}, to_apply=%add"]
    lines += ["  ROOT %b = f32[2]{0} dynamic-slice(%a, %i), dynamic_slice_sizes={2}", "}"]
    lines += ["ENTRY %main (x: f32[8]) -> f32[2] {"]
    lines += ["  ROOT %c = f32[2]{0} fusion(%x), kind=kCustom, calls=%all-reduce-scatter.3.clone", "}"]
    assert hlo_collectives("\n".join(lines)) == {"reduce-scatter": (1, 24)}
