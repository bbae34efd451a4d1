"""The common parts of the models: the mesh, abstract arrays with shardings, a train step with Adam, lowering.

Everything is abstract: no device is touched and nothing is compiled, so 96 layers lower in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = AbstractMesh((2, 2, 2), ("data", "model", "fsdp"), axis_types=(AxisType.Auto,) * 3)
BATCH = ("data", "fsdp")  # the axes over which a batch is split

Loss = Callable[..., jax.Array]


def sharding(*spec: Any) -> NamedSharding:
    """The sharding over `MESH` with one entry of `spec` per dimension."""
    return NamedSharding(MESH, P(*spec))  # type: ignore[no-untyped-call]


def array(shape: tuple[int, ...], *spec: Any, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    """An abstract array; without a `spec` its sharding is free."""
    if not spec:
        return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding(*spec))  # type: ignore[no-untyped-call]


def constrain(x: jax.Array, *spec: Any) -> jax.Array:
    """`x` with a sharding constraint."""
    return jax.lax.with_sharding_constraint(x, sharding(*spec))  # type: ignore


def stack(tree: Any, n: int) -> Any:
    """The abstract parameters of `n` layers with a leading dimension, as `jax.lax.scan` wants them."""

    def stacked(x: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
        spec = (None, *x.sharding.spec) if x.sharding is not None else ()
        return array((n, *x.shape), *spec, dtype=x.dtype)

    return jax.tree.map(stacked, tree)


def layers(block: Callable[[jax.Array, Any], jax.Array], x: jax.Array, params: Any) -> jax.Array:
    """`block` applied for every layer: a Python list of parameters is unrolled, a stacked tree is scanned."""
    if isinstance(params, list):
        shared = jax.jit(block, inline=True)  # traced once, inlined for every layer
        for p in params:
            x = shared(x, p)
        return x
    return jax.lax.scan(lambda carry, p: (block(carry, p), None), x, params)[0]


def norm(x: jax.Array, gain: jax.Array) -> jax.Array:
    """Root-mean-square normalisation over the last dimension."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * gain


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean negative log-likelihood of integer `labels`."""
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1))


def adam(loss: Loss) -> Callable[..., Any]:
    """A train step: (params, m, v, count, *batch) -> (loss, params, m, v, count)."""

    def train_step(params: Any, m: Any, v: Any, count: jax.Array, *batch: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, *batch)
        count = count + 1
        t = count.astype(jnp.float32)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        rate = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, m, v)
        return value, params, m, v, count

    return train_step


def lower(function: Callable[..., Any], *arguments: Any) -> jax.stages.Lowered:
    """`function` lowered for CPU on abstract `arguments`."""
    lowered: jax.stages.Lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cpu",))
    return lowered


def lower_loss(loss: Loss, params: Any, *batch: Any, train: bool) -> jax.stages.Lowered:
    """The forward pass `loss(params, *batch)`, or a train step with Adam around it."""
    if not train:
        return lower(loss, params, *batch)
    return lower(adam(loss), params, params, params, array((), dtype=jnp.int32), *batch)
