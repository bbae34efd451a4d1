"""A transformer with the sizes of Llama 3 8B: a train step (Adam, layers scanned and computed again, products
in bf16), parameters in parts over both axes of a mesh of "data" and "model"."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

WIDTH, HIDDEN, HEADS, GROUPS, HEAD = 4096, 14336, 32, 8, 128
Params = dict[str, Any]


@dataclass(frozen=True)
class Llama:
    """A model on a mesh of so many devices along "data" and "model", and its batch."""

    mesh: tuple[int, int]
    layers: int
    vocabulary: int
    batch: int
    sequence: int

    def over(self, *axes: str | None) -> NamedSharding:
        """A sharding by an axis of each dimension."""
        mesh = AbstractMesh(self.mesh, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
        return NamedSharding(mesh, PartitionSpec(*axes))  # type: ignore[no-untyped-call]

    def array(self, shape: tuple[int, ...], *axes: str | None, dtype: Any = jnp.float32) -> Any:
        """An abstract array with such a sharding."""
        return jax.ShapeDtypeStruct(shape, dtype, sharding=self.over(*axes))  # type: ignore[no-untyped-call]

    def params(self) -> Params:
        """The parameters, those of all layers in one array."""
        array, layers = self.array, self.layers
        layer = {
            "query": array((layers, WIDTH, GROUPS, HEADS // GROUPS, HEAD), None, "data", "model"),
            "key": array((layers, WIDTH, GROUPS, HEAD), None, "data", "model"),
            "value": array((layers, WIDTH, GROUPS, HEAD), None, "data", "model"),
            "out": array((layers, GROUPS, HEADS // GROUPS, HEAD, WIDTH), None, "model", None, None, "data"),
            "gate": array((layers, WIDTH, HIDDEN), None, "data", "model"),
            "up": array((layers, WIDTH, HIDDEN), None, "data", "model"),
            "down": array((layers, HIDDEN, WIDTH), None, "model", "data"),
            "norm1": array((layers, WIDTH)),
            "norm2": array((layers, WIDTH)),
        }
        return {
            "layers": layer,
            "embedding": array((self.vocabulary, WIDTH), "model", "data"),
            "norm": array((WIDTH,)),
            "logits": array((WIDTH, self.vocabulary), "data", "model"),
        }

    def by_batch(self, x: Any) -> Any:
        """Activations, constrained to be in parts of the batch."""
        return jax.lax.with_sharding_constraint(x, self.over("data", None, None))  # type: ignore[no-untyped-call]

    def text(self, platform: str) -> str:
        """The StableHLO text of the step, lowered for a platform."""
        params = self.params()
        held = jax.tree.map(lambda leaf: leaf.sharding, params)
        results = (held, held, held, self.over())
        jitted = jax.jit(partial(step, self), donate_argnums=(0, 1, 2), out_shardings=results)
        tokens = self.array((self.batch, self.sequence), "data", dtype=jnp.int32)
        traced = jitted.trace(params, params, params, tokens)
        return str(traced.lower(lowering_platforms=(platform,)).as_text())


def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    x = x.astype(jnp.float32)
    return (x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale).astype(jnp.bfloat16)


def rotate(x: jax.Array) -> jax.Array:
    """Rotary position embedding; the sequence is dimension 1, the features are the last dimension."""
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] / 500000.0 ** (jnp.arange(half) / half)
    angle = angle.reshape(x.shape[1], *[1] * (x.ndim - 3), half)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1).astype(x.dtype)


def layer(model: Llama, x: jax.Array, params: Params) -> tuple[jax.Array, None]:
    p = {name: value if name.startswith("norm") else value.astype(x.dtype) for name, value in params.items()}
    y = norm(x, p["norm1"])
    q = rotate(jnp.einsum("bsd,dgnh->bsgnh", y, p["query"]))
    k = rotate(jnp.einsum("bsd,dgh->bsgh", y, p["key"]))
    v = jnp.einsum("bsd,dgh->bsgh", y, p["value"])
    scores = jnp.einsum("bqgnh,bkgh->bgnqk", q, k).astype(jnp.float32) * HEAD**-0.5
    position = jnp.arange(model.sequence)
    scores = jnp.where(position[:, None] >= position, scores, -1e9)
    mixed = jnp.einsum("bgnqk,bkgh->bqgnh", jax.nn.softmax(scores, -1).astype(x.dtype), v)
    x = x + jnp.einsum("bqgnh,gnhd->bqd", mixed, p["out"])
    y = norm(x, p["norm2"])
    x = x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]
    return model.by_batch(x), None


def loss(model: Llama, params: Params, tokens: jax.Array) -> jax.Array:
    x = params["embedding"].astype(jnp.bfloat16)[tokens]
    x = model.by_batch(x)
    x, _ = jax.lax.scan(jax.checkpoint(partial(layer, model)), x, params["layers"])
    logits = (norm(x, params["norm"]) @ params["logits"].astype(x.dtype)).astype(jnp.float32)
    known = jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1]), tokens[:, 1:, None], -1)
    return -jnp.mean(known)


def step(model: Llama, params: Params, first: Params, second: Params, tokens: jax.Array) -> Any:
    """Adam, without what corrects its first steps."""
    value, gradient = jax.value_and_grad(partial(loss, model))(params, tokens)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, second, gradient)
    params = jax.tree.map(lambda p, m, v: p - 1e-4 * m / (jnp.sqrt(v) + 1e-8), params, first, second)
    return params, first, second, value
