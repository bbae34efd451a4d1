"""A train step of a model whose layers are scanned, with weights in parts along both axes of the mesh."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from .programs import mesh


def scanned_step(layers: int = 8, width: int = 512) -> Any:
    """The step, lowered."""

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        def layer(x: jax.Array, w: Any) -> tuple[jax.Array, None]:
            return jnp.tanh(x @ w[0]) @ w[1] + x, None

        return (jax.lax.scan(layer, x, weights)[0] ** 2).mean()

    def step(weights: Any, x: jax.Array) -> tuple[jax.Array, Any]:
        value, gradients = jax.value_and_grad(loss)(weights, x)
        return value, jax.tree.map(lambda w, gradient: w - 0.1 * gradient, weights, gradients)

    def array(*shape: int, spec: tuple[str | None, ...]) -> Any:
        sharding = NamedSharding(mesh(), PartitionSpec(*spec))  # type: ignore[no-untyped-call]
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)  # type: ignore[no-untyped-call]

    up = array(layers, width, 4 * width, spec=(None, "data", "model"))
    down = array(layers, 4 * width, width, spec=(None, "model", "data"))
    return jax.jit(step).lower((up, down), array(width // 2, width, spec=("data",)))
