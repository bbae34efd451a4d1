"""Calls that only say something of a value: each device says so of its part, and nothing moves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from shardlog.executing.execution import alone_on
from shardlog.tests.support.lines_of_jax import on_host

pytestmark = pytest.mark.versions

TARGETS = (
    *("annotate_device_placement", "InspectSharding", "LayoutConstraint", "MoveToDevice", "MoveToHost"),
    *("PinToDevice", "PinToDeviceSram", "xla.megascale.provide_metadata"),
)
PLACED = """\
sdy.mesh @mesh = <["x"=4]>
#rows = #sdy.sharding<@mesh, [{"x"}, {}]>
func.func @main(%a: tensor<16x8xf32> {sdy.sharding = #rows}) -> (tensor<16x8xf32> {sdy.sharding = #rows}) {
  %0 = stablehlo.custom_call @TARGET(%a) {ATTRIBUTES} : (tensor<16x8xf32>) -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}
"""
EFFECT = "has_side_effect = true"
name: Any = checkpoint_name
Spec: Any = PartitionSpec


def placed(target: str, attributes: str = EFFECT) -> str:
    return PLACED.replace("TARGET", target).replace("ATTRIBUTES", attributes)


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_moves(target: str) -> None:
    result = shardlog.run(placed(target))
    assert not result.partition().collectives
    assert result.text().count('[{"x"}, {}]') == 3


def test_shardy_knows_fewer() -> None:
    known, unknown = (
        shardlog.run(placed(target).replace(" {sdy.sharding = #rows}) {", ") {"), strict_shardy=True)
        for target in ("MoveToHost", "PinToDevice")
    )
    assert known.text().count('[{"x"}, {}]') > unknown.text().count('[{"x"}, {}]')


@pytest.mark.parametrize("target", TARGETS)
def test_calls_keep_what_they_say(target: str) -> None:
    said = f'backend_config = "7", {EFFECT}, mhlo.frontend_attributes = {{_xla_buffer_placement = "vmem"}}'
    text = shardlog.run(placed(target, said)).partition().text()
    line = next((line for line in text.splitlines() if "custom_call" in line), "")
    if target == "InspectSharding":  # it names a function of the process that made the module
        assert not line
    else:
        assert f"@{target}" in line
        assert said in line
        assert line.endswith("(tensor<4x8xf32>) -> tensor<4x8xf32>")


def test_a_value_that_is_kept_alive_stays_in_parts() -> None:
    text = placed("dce_sink").replace("%0 = ", "").replace(" -> tensor<16x8xf32>\n", " -> ()\n")
    program = shardlog.run(text.replace("return %0", "return %a")).partition()
    assert not program.collectives
    assert "@dce_sink(%arg1)" in program.text()


def test_other_effects_happen_once() -> None:
    assert [each.kind for each in shardlog.run(placed("mine")).partition().collectives] == [
        "all-gather",
        "all-reduce",
    ]


def test_targets_of_users(tmp_path: Path) -> None:
    rules = tmp_path / "mine.dl"
    rules.write_text('annotates_target("mine").\n')
    result = shardlog.run(placed("mine"), rules=[rules])
    assert not result.partition().collectives
    assert "stablehlo.custom_call @mine(%arg1)" in result.partition().text()


def test_inspected_shardings_run_in_other_processes() -> None:
    """The call has an address in the process that made the module, to which XLA would jump."""
    address = r'backend_config = "\10\05\CA\CFv\7F\00\00@\E3\12\B4v\7F\00\00"'
    result = shardlog.run(placed("InspectSharding", f"{address}, {EFFECT}"))
    array = np.arange(16 * 8, dtype=np.float32).reshape(16, 8)
    (found,) = result.partition().compile()(array)
    np.testing.assert_array_equal(found, array)
    (alone,) = alone_on(result.result, jax.devices())([array])
    np.testing.assert_array_equal(alone, array)


# ---- Programs of JAX, lowered for devices that have several memories --------------------------------------


def _mesh() -> Mesh:
    return Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "model"))


def offloaded(x: Any, up: Any, down: Any) -> Any:
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["hidden"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def layer(x: Any, _: None) -> tuple[Any, None]:
        return jnp.sin(name(jnp.tanh(x @ up), "hidden") @ down), None

    return jax.lax.scan(jax.checkpoint(layer, policy=policy), x, None, length=3)[0].sum()


def moved(x: Any, up: Any, down: Any) -> Any:
    hidden = jax.device_put(jnp.tanh(x @ up), jax.memory.Space.Host)
    return (jax.device_put(hidden, jax.memory.Space.Device) @ down).sum()


def hosted(x: Any, up: Any, down: Any) -> Any:
    hidden = on_host(lambda hidden: jnp.tanh(hidden) * 2)(x @ up)
    return (hidden @ down).sum()


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.value_and_grad(function, argnums=(0, 1, 2))


@pytest.mark.parametrize(
    ("function", "said", "most"),
    [
        (moved, "_xla_buffer_placement", 1),
        (offloaded, None, 2),
        (gradient(offloaded), "_xla_buffer_placement", 8),
        (hosted, '_xla_compute_type = "host"', 1),
        (gradient(hosted), '_xla_compute_type = "host"', 3),
    ],
)
def test_programs(function: Callable[..., Any], said: str | None, most: int) -> None:
    mesh, rng = _mesh(), np.random.default_rng(0)
    specs = Spec("data"), Spec(None, "model"), Spec("model")
    arrays = [rng.standard_normal(shape).astype(np.float32) / 8 for shape in ((16, 32), (32, 64), (64, 32))]
    given = [jax.device_put(a, NamedSharding(mesh, s)) for a, s in zip(arrays, specs, strict=True)]
    lowered = jax.jit(function).trace(*given).lower(lowering_platforms=("tpu",))
    program = shardlog.run(lowered).partition()
    assert len(program.collectives) <= most
    text = program.text()
    assert said is None or said in text
    for line in text.splitlines():
        assert "annotate_device_placement" not in line or "has_side_effect = true" in line
    results = program.compile()(*given)
    for mine, theirs in zip(jax.tree.leaves(results), jax.tree.leaves(function(*arrays)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_results_lie_where_the_program_says() -> None:
    sharding = NamedSharding(_mesh(), Spec("data"))
    state = jax.device_put(jnp.ones((16, 8)), sharding.with_memory_kind("pinned_host"))

    def step(state: Any) -> Any:
        return jax.device_put(jax.device_put(state, jax.memory.Space.Device) * 2, jax.memory.Space.Host)

    jitted = jax.jit(step, out_shardings=sharding.with_memory_kind("pinned_host"))
    program = shardlog.run(jitted.trace(state).lower(lowering_platforms=("tpu",))).partition()
    results = program.compile()(state)
    assert results.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(results, np.full((16, 8), 2, np.float32))


def test_nobody_is_told_in_another_process(tmp_path: Path) -> None:
    """What ``jax.debug.inspect_array_sharding`` leaves has an address, and XLA would call what is there."""

    def function(x: Any) -> Any:
        jax.debug.inspect_array_sharding(x * 2, callback=print)
        return x * 2

    x = jax.ShapeDtypeStruct((16, 8), np.float32, sharding=NamedSharding(_mesh(), Spec("data")))  # type: ignore[no-untyped-call]
    path = tmp_path / "inspected.mlir"
    path.write_text(jax.jit(function).lower(x).as_text())
    assert "@InspectSharding" in path.read_text()
    code = f"import pathlib, shardlog; shardlog.run(pathlib.Path({str(path)!r})).compile()"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("partitioner", ["xla", "shardlog"])
def test_who_is_there_is_told(partitioner: Any) -> None:
    told: list[Any] = []

    def function(x: Any) -> Any:
        jax.debug.inspect_array_sharding(x * 2, callback=told.append)
        return x * 2

    sharding = NamedSharding(_mesh(), Spec("data"))
    shardlog.jit(function, in_shardings=sharding, partitioner=partitioner)(np.ones((16, 8), np.float32))
    assert [sharding.spec for sharding in told] == [Spec("data")]
