"""Collectives in branches and loops of manual computations, which all devices must reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.sharding import Mesh
from shardlog.errors import ShardlogError

X = np.linspace(1, 2, 24, dtype=np.float32).reshape(4, 6)
lax: Any = jax.lax  # whose collectives have no types
PartitionSpec: Any = jax.sharding.PartitionSpec
SPEC = PartitionSpec("row", "column")


def _half_of_sum(v: Any) -> Any:
    return lax.psum(v, "column") / 6


def _shrink(v: Any) -> Any:
    """A loop that each device may leave when it likes."""
    return jax.lax.while_loop(lambda c: jnp.max(c) > 1, _half_of_sum, v)


def _shrink_together(v: Any) -> Any:
    return jax.lax.while_loop(lambda c: lax.pmax(jnp.max(c), "column") > 1, _half_of_sum, v)


def _called(v: Any) -> Any:
    return jax.jit(_shrink)(v)


def _by_column(v: Any) -> Any:
    return jax.lax.cond(jax.lax.axis_index("column") == 0, _half_of_sum, lambda c: c, v)


def _by_row(v: Any) -> Any:
    return jax.lax.cond(jax.lax.axis_index("row") == 0, _half_of_sum, lambda c: c, v)


def _decomposed(v: Any) -> Any:
    """A branch by the result of a custom call, whose operands are the same on all devices."""
    whole = jnp.linalg.cholesky(lax.psum(v.T @ v, ("row", "column")) + jnp.eye(2))
    return jax.lax.cond(whole[0, 0] > 1, _half_of_sum, lambda c: c, v)


def _rematerialized(v: Any) -> Any:
    """A branch by a number, beside which a value that differs passes a barrier."""

    @jax.checkpoint
    def half(v: Any, number: Any) -> Any:
        return jnp.sin(jax.lax.cond(number > 1, _half_of_sum, jnp.cos, v))

    return jax.grad(lambda v, number: half(v, number).sum())(v, lax.pmax(3, ("row", "column")))


def _scanned(v: Any) -> Any:
    """A pipeline: values go round, for a fixed number of steps."""

    def step(c: Any, t: Any) -> Any:
        c = lax.ppermute(c, "column", [(i, (i + 1) % 3) for i in range(3)])
        return jax.jit(_shrink_together)(c) + t, c.sum()

    return jax.lax.scan(step, v, jnp.arange(3.0))[0]


def _run(function: Callable[[Any], Any]) -> Any:
    """What a program gives that is partitioned, and what it gives in JAX."""
    devices = jax.devices()[:6]
    mesh = Mesh(np.array(devices).reshape(2, 3), ("row", "column"))
    mapped = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=SPEC, out_specs=SPEC, check_vma=False))
    compiled = shardlog.run(mapped.lower(X).as_text()).partition().compile(devices)
    return jax.tree.leaves(compiled(X))[0], mapped(X)


@pytest.mark.parametrize("function", [_shrink, _called, _by_column])
def test_what_some_devices_may_not_reach_is_refused(function: Callable[[Any], Any]) -> None:
    with pytest.raises(ShardlogError, match=r"devices along axis column may decide differently") as refused:
        _run(function)
    assert "jax.lax.pmax over that axis" in refused.value.hint


@pytest.mark.parametrize("function", [_shrink_together, _by_row, _decomposed, _rematerialized, _scanned])
def test_what_all_devices_of_a_group_reach_runs(function: Callable[[Any], Any]) -> None:
    found, wanted = _run(function)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_computation_without_operands_is_checked_and_the_message_names_where_places_come_from() -> None:
    mesh = Mesh(np.array(jax.devices()[:6]).reshape(2, 3), ("row", "column"))
    mapped = jax.shard_map(lambda: _by_column(jnp.ones(2)), mesh=mesh, in_specs=(), out_specs=PartitionSpec())
    program = shardlog.run(jax.jit(mapped).lower().as_text()).partition()
    with pytest.raises(ShardlogError, match=r"column may decide .* it depends on stablehlo.partition_id"):
        program.compile(jax.devices()[:6])


def test_constants_of_all_sizes_are_read() -> None:
    mesh = Mesh(np.array(jax.devices()[:6]).reshape(2, 3), ("row", "column"))
    mapped = jax.shard_map(_by_row, mesh=mesh, in_specs=SPEC, out_specs=SPEC, check_vma=False)
    number = "%large = stablehlo.constant dense<18446744073709551615> : tensor<ui64>\n"
    text = jax.jit(mapped).lower(X).as_text().replace("sdy.return", number + "sdy.return")
    assert number in text
    shardlog.run(text).partition().compile(jax.devices()[:6])
