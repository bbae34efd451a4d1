"""Manual computations in a whole run: our module is Shardy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardlog
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from .compare import differences
from .oracle import forked, propagate

MESH = AbstractMesh((2, 2, 2), ("a", "b", "c"))
P: Any = PartitionSpec  # jax has no types for it
Tensor: Any = jax.ShapeDtypeStruct


def manual(function: Callable[..., Any], *axes: str) -> Callable[..., Any]:
    """`function` on shards along "a" of its first operand, with these manual axes."""
    return jax.shard_map(
        function, mesh=MESH, in_specs=P("a"), out_specs=P("a"), axis_names={*axes}, check_vma=False
    )


def after_matmul(x: Any, w: Any) -> Any:
    return jnp.tanh(manual(jnp.sin, "a")(x @ w)) + 1


def in_loop(x: Any, w: Any) -> Any:
    step = manual(lambda t: t * 2, "a", "b")
    return jax.lax.scan(lambda c, _: (jnp.tanh(step(c) @ w), c.sum()), x, None, length=4)


def after_loop(x: Any, w: Any) -> Any:
    looped, _ = jax.lax.scan(lambda c, _: (c @ w, None), x, None, length=3)
    return manual(lambda t: t * 2, "a", "b", "c")(looped).sum(0)


def in_call(x: Any, w: Any) -> Any:
    called = jax.jit(manual(jnp.sin, "a"))
    return called(x @ w) + called(w)


def in_branch(x: Any, w: Any) -> Any:
    return jax.lax.cond(x[0, 0] > 0, lambda: manual(lambda t: t + 1, "a")(x), lambda: x @ w)


@pytest.mark.parametrize("function", [after_matmul, in_loop, after_loop, in_call, in_branch])
def test_shard_map(function: Callable[..., Any]) -> None:
    shardings = NamedSharding(MESH, P("a", "b")), NamedSharding(MESH, P(None, "c"))
    tensor = Tensor((16, 16), jnp.float32)
    traced = jax.jit(function, in_shardings=shardings).trace(tensor, tensor)
    text = traced.lower(lowering_platforms=("cpu",)).as_text()
    assert "sdy.manual_computation" in text
    assert differences(shardlog.run(text).text(), forked(propagate, text)) == []
