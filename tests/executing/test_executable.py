"""What was decided is what runs: compiled modules give the program's results, with the shardings decided."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.sharding import NamedSharding
from jaxlib.mlir import ir
from shardlog.errors import ShardlogError
from shardlog.executing.comparing import compare
from shardlog.executing.domains import domains
from shardlog.executing.execution import alone_on
from shardlog.executing.inputs import random_inputs
from shardlog.executing.partial import combined
from shardlog.executing.values import boundary
from shardlog.importers.sources.text import make_context
from shardlog.partition.forms import FORMS, Form

from ..partition.generated import random_programs
from ..partition.running import run_whole
from ..support import models
from ..support.drawing import by_day, in_turn
from ..support.programs import PROGRAMS, array, lowered, mesh


def arrays(name: str) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.random(shape, np.float32) for shape in PROGRAMS[name][1]]


@pytest.mark.parametrize("name", in_turn(0, PROGRAMS))
def test_compiled_programs_give_the_same_results(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = shardlog.run(lowered(name, 2))
    inputs = arrays(name)
    got = result.compile()(*inputs)
    expected = jax.jit(PROGRAMS[name][0])(*inputs)
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-3)
    for mine, sharding in zip(jax.tree.leaves(got), jax.tree.leaves(result.result_shardings), strict=False):
        assert mine.sharding.is_equivalent_to(NamedSharding(mesh(), sharding.spec), mine.ndim)


@pytest.mark.parametrize("name", by_day(["vit", "recommender"], models.MODELS))
def test_models_give_the_results_of_one_device(name: str) -> None:
    check_results(models.text(name, depth=1, train=False))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", ["vit", "lstm"])
def test_train_steps_give_the_results_of_one_device(name: str) -> None:
    check_results(models.text(name, depth=2, scan=True))


def check_results(text: str) -> None:
    result, devices = shardlog.run(text), jax.devices("cpu")[:8]
    inputs = random_inputs(boundary(result.result)[0], 0, domains(result.result))
    outputs = [np.asarray(array) for array in result.compile(devices)(*inputs)]
    wrong = [
        str(one)
        for one in compare(result.result, alone_on(result.result, devices), inputs, outputs)
        if not one.right
    ]
    assert wrong == []


def test_what_would_be_zero_but_for_rounding_may_be_anything_of_its_size() -> None:
    x = np.random.default_rng(0).random(4096).astype(np.float32)
    result = shardlog.run(jax.jit(lambda x: jnp.sum(jax.nn.softmax(x)) - 1).lower(x))
    devices = jax.devices("cpu")[:1]
    expected, alone = np.asarray(result.compile(devices)(x)), alone_on(result.result, devices)

    def right(factor: float) -> bool:
        (one,) = compare(result.result, alone, [x], [np.float32(factor) * expected])
        return one.right

    assert right(1) and right(2) and right(-0.5) and right(20) and not right(1000)


# XLA does not take these, or computes other values when it partitions them along what it would not choose.
BEYOND_XLA = {"convolution", "dynamic", "fft", "gather", "reduce", "scatter", "top_k"}


@pytest.mark.parametrize("part", by_day([0, 1], range(4)))
def test_random_programs_give_the_results_of_one_device(part: int) -> None:
    """Meshes that list their devices in an order, sub-axes, types of all kinds."""
    able = [name for name in random_programs.NAMES if name not in BEYOND_XLA]
    for number in range(5 * part, 5 * part + 5):
        program, ops = random_programs.write(2, number, able)
        if len(program.meshes) > 1:
            continue
        with jax.enable_x64(True):
            got = shardlog.run(program.text(True)).compile()(*program.arrays)
        with make_context():
            expected = run_whole(ir.Module.parse(program.text(False)), program.arrays)
        for mine, theirs in zip(got, expected, strict=True):
            assert random_programs.differs(np.asarray(mine), theirs) == "", (number, ops)


TEXT = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
#rows = #sdy.sharding<@mesh, [{"data"}, {}]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #rows}) -> tensor<8x16xf32> {
  %0 = stablehlo.tanh %x : tensor<8x16xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
"""


def test_the_entry_point_may_have_any_name() -> None:
    result = shardlog.run(TEXT.replace("@main", "@forward"))
    x = np.linspace(-1, 1, 128, dtype=np.float32).reshape(8, 16)
    for made in (result.compile(), result.partition().compile()):
        (found,) = made(x)
        np.testing.assert_allclose(found, np.tanh(x), rtol=1e-5)
    assert result.partition().compile_ahead("cpu").devices == 8


def test_shardings_of_values_bind() -> None:
    """XLA keeps to a constraint; of a sharding on an op it takes no notice."""
    decided = shardlog.run(TEXT, annotate=('%1=[{"model"}, {}]',))
    sharding = '<@mesh, [{"model"}, {}]> : tensor<16x8xf32>'
    for text, kept in ((decided.text(), False), (decided.text(bind="all"), True)):
        seen = shardlog.run(text, view="compiled")
        agreement = seen.agreement()
        assert agreement is not None
        assert agreement.equal == agreement.ops
        assert (sharding in seen.text()) is kept
    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    (got,) = decided.compile()(x)
    np.testing.assert_allclose(got, np.tanh(x), rtol=1e-6)


def test_calls_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        jax.debug.print("{} in all", x.sum())
        kind = jax.ShapeDtypeStruct(x.shape, x.dtype)  # type: ignore[no-untyped-call]
        return jax.pure_callback(np.sin, kind, x)

    x = np.ones((8, 16), np.float32)
    program = jax.jit(f).lower(array((8, 16)))
    np.testing.assert_allclose(shardlog.run(program).compile()(x), np.sin(x))
    jax.effects_barrier()  # type: ignore[no-untyped-call]
    assert "128.0 in all" in capsys.readouterr().out
    with pytest.raises(shardlog.ShardlogError, match="the program calls back into Python") as error:
        shardlog.run(program.as_text()).compile()
    assert error.value.where.startswith("<text>:")


HOISTED = """
import jax, jax.numpy as jnp, numpy as np, shardlog
from shardlog.tests.support.programs import array
numbers = jnp.arange(256.0).reshape(16, 16)
def f(x, y):
    return x @ numbers
program = jax.jit(f).lower(array((8, 16), "data"), array((4,)))
assert program._lowering.const_args
x, y = np.ones((8, 16), np.float32), np.ones(4, np.float32)
for view in ("lowered", "roundtrip", "compiled"):
    np.testing.assert_allclose(shardlog.run(program, view=view).compile()(x, y), f(x, y))
"""


def test_constants_that_jax_hands_over() -> None:
    """As arguments, which new versions of JAX make of arrays that a function closes over."""
    environment = os.environ | {"JAX_USE_SIMPLIFIED_JAXPR_CONSTANTS": "1"}
    assert subprocess.run([sys.executable, "-c", HOISTED], env=environment).returncode == 0


def test_what_only_jax_can_call() -> None:
    def ordered(x: Any) -> Any:
        jax.debug.print("{}", x, ordered=True)
        return x

    def changes(ref: Any, x: Any) -> Any:
        ref[...] = x
        return x

    x = np.ones(3, np.float32)
    with pytest.raises(shardlog.ShardlogError, match="the program has tokens"):
        shardlog.run(jax.jit(ordered).lower(x)).compile()
    with pytest.raises(shardlog.ShardlogError, match="the program changes its arguments in place"):
        shardlog.run(jax.jit(changes).lower(jax.new_ref(jnp.zeros(3)), x)).compile()


def test_arguments_of_other_types() -> None:
    """XLA would crash."""
    executable = shardlog.run(TEXT).compile()
    for x, given in (
        (np.ones((8, 16), np.int32), "int32[8, 16]"),
        (np.ones((8, 8), np.float32), "float32[8, 8]"),
    ):
        with pytest.raises(shardlog.ShardlogError) as error:
            executable(x)
        assert f"%arg0 is {given}, expected tensor<8x16xf32>" in str(error.value)
    wide = shardlog.run(
        "func.func @main(%x: tensor<4xi64>) -> tensor<4xi64> {\n  return %x : tensor<4xi64>\n}"
    )
    with pytest.raises(shardlog.ShardlogError, match=r"hint: jax\.config\.update\('jax_enable_x64', True\)"):
        wide.compile()(np.ones(4, np.int64))


SEVERAL_ORDERS = """\
sdy.mesh @one = <["x"=2, "y"=4], device_ids=[2, 3, 0, 1, 6, 7, 4, 5]>
sdy.mesh @other = <["u"=4, "v"=2], device_ids=[7, 6, 5, 4, 0, 1, 2, 3]>
sdy.mesh @flat = <["all"=8]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@one, [{"x"}, {"y"}]>},
                %y: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@other, [{"u"}, {"v"}]>})
    -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@flat, [{"all"}, {}]>},
        tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@other, [{}, {"u"}]>}) {
  %0 = stablehlo.subtract %x, %y : tensor<8x16xf32>
  %1 = stablehlo.multiply %0, %y : tensor<8x16xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
}
"""


@pytest.mark.parametrize("partitioned", [False, True], ids=["by XLA", "by shardlog"])
def test_devices_in_several_orders(partitioned: bool) -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 8, 16)).astype(np.float32)
    result = shardlog.run(SEVERAL_ORDERS)
    program = result.partition() if partitioned else result
    difference, product = program.compile()(x, y)
    assert np.array_equal(difference, x - y)
    assert np.array_equal(product, (x - y) * y)
    held = {shard.device.id: shard.index[1] for shard in product.addressable_shards}
    assert held[7] == held[6] == slice(0, 4, None)  # @other lists device 7 first, then device 6


def test_what_cannot_be_called() -> None:
    executable = shardlog.run(lowered("mlp", 0)).compile()
    with pytest.raises(shardlog.ShardlogError, match="expected what was lowered"):
        executable(1)
    with pytest.raises(shardlog.ShardlogError, match="4 devices for a mesh of 8"):
        shardlog.run(TEXT).compile(jax.devices()[:4])


SLICED = """
sdy.mesh @mesh = <["a"=6]>
sdy.mesh @other = <["b"=2, "c"=3]>
func.func @main(%x: tensor<16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"a":(1)2}}]>}}, %at: tensor<i32>)
    -> (tensor<12xf32> {{sdy.sharding = #sdy.sharding<{sharding}>}}) {{
  %0 = stablehlo.dynamic_slice %x, %at, sizes = [12] {{{said}}}
    : (tensor<16xf32>, tensor<i32>) -> tensor<12xf32>
  return %0 : tensor<12xf32>
}}
"""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("sharding", "parts"),
    [('@mesh, [{"a":(1)3}]', 1), ('@other, [{"b"}]', 2), ('@mesh, [{}], unreduced={"a"}', 1)],
    ids=["cut otherwise", "another mesh", "unreduced"],
)
def test_partitioned_programs_have_the_boundary_they_say(form: Form, sharding: str, parts: int) -> None:
    """XLA slices what leaves a manual computation whole, and takes two slices for one, whose place it forgets
    to clamp."""
    partial = "unreduced" in sharding  # only what is unreduced is returned as such
    said = f"sdy.sharding = #sdy.sharding_per_value<[<{sharding}>]>" if partial else ""
    program = shardlog.run(SLICED.format(sharding=sharding, said=said)).partition(form)
    x = np.arange(16, dtype=np.float32)
    (got,) = program.compile()(x, np.int32(9))
    np.testing.assert_array_equal(combined(got), x[4:])
    assert got.addressable_shards[0].data.shape == (12 // parts,)
    assert bool(got.sharding.spec.unreduced) == partial


@pytest.mark.parametrize("form", FORMS)
def test_partitioned_programs_for_one_device(form: Form) -> None:
    """XLA compiles no manual computation for one device."""
    text = SLICED.replace('"a"=6', '"a"=1').replace('"b"=2, "c"=3', '"b"=1').replace('"a":(1)2', '"a"')
    program = shardlog.run(text.format(sharding='@other, [{"b"}]', said="")).partition(form)
    x = np.arange(16, dtype=np.float32)
    (got,) = program.compile()(x, np.int32(9))
    np.testing.assert_array_equal(got, x[4:])


def test_an_op_that_xla_does_not_have_is_named_with_its_place() -> None:
    text = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "my.gated"(%a) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    """
    result = shardlog.run(text)
    for compile_ in (result.compile, result.partition().compile):
        with pytest.raises(ShardlogError, match=r":4:\d+: error: XLA does not have the op my.gated"):
            compile_()


def test_a_constant_that_was_left_out_in_printing_is_named() -> None:
    text = """
        func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
          %0 = stablehlo.constant dense_resource<__elided__> : tensor<64xf32>
          %1 = stablehlo.add %x, %0 : tensor<64xf32>
          return %1 : tensor<64xf32>
        }"""
    with pytest.raises(ShardlogError, match="a constant left out in printing: print all elements"):
        shardlog.run(text).compile(jax.devices("cpu")[:1])
