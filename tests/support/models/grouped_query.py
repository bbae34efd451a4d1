"""A transformer with grouped-query attention, rotary embeddings and a gated feed-forward network."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .common import BATCH, array, constrain, cross_entropy, layers, lower_loss, norm, stack

VOCABULARY, WIDTH, HEADS, GROUPS, HEAD, HIDDEN, SEQUENCE, BATCH_SIZE = 128, 64, 8, 2, 8, 96, 16, 8

LAYER = {
    "query": array((WIDTH, GROUPS, HEADS // GROUPS, HEAD), "fsdp", "model", None, None),
    "key": array((WIDTH, GROUPS, HEAD), "fsdp", "model", None),
    "value": array((WIDTH, GROUPS, HEAD), "fsdp", "model", None),
    "out": array((GROUPS, HEADS // GROUPS, HEAD, WIDTH), "model", None, None, "fsdp"),
    "gate": array((WIDTH, HIDDEN), "fsdp", "model"),
    "up": array((WIDTH, HIDDEN), "fsdp", "model"),
    "down": array((HIDDEN, WIDTH), "model", "fsdp"),
    "norm1": array((WIDTH,), None),
    "norm2": array((WIDTH,), None),
}


def rotate(x: jax.Array) -> jax.Array:
    """Rotary position embedding; the sequence is dimension 1, the features are the last dimension."""
    half = x.shape[-1] // 2
    frequency = 1.0 / 10000 ** (jnp.arange(half) / half)
    angle = jnp.arange(x.shape[1])[:, None] * frequency
    angle = angle.reshape(x.shape[1], *[1] * (x.ndim - 3), half)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1)


def attention(x: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    """Causal self-attention in which a group of query heads shares a key and a value head."""
    q = rotate(jnp.einsum("bsd,dgnh->bsgnh", x, p["query"]))
    k = rotate(jnp.einsum("bsd,dgh->bsgh", x, p["key"]))
    v = jnp.einsum("bsd,dgh->bsgh", x, p["value"])
    scores = jnp.einsum("bqgnh,bkgh->bgnqk", q, k) * HEAD**-0.5
    position = jnp.arange(x.shape[1])
    scores = jnp.where(position[:, None] >= position, scores, -jnp.inf)
    mixed = jnp.einsum("bgnqk,bkgh->bqgnh", jax.nn.softmax(scores, -1), v)
    return jnp.einsum("bqgnh,gnhd->bqd", mixed, p["out"])


def block(x: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    """One layer; the hidden activations are constrained on one dimension and free on the others."""
    x = x + attention(norm(x, p["norm1"]), p)
    y = norm(x, p["norm2"])
    free = jax.sharding.PartitionSpec.UNCONSTRAINED
    hidden = constrain(jax.nn.silu(y @ p["gate"]) * (y @ p["up"]), free, free, "model")
    return x + hidden @ p["down"]


def loss(params: dict[str, Any], tokens: jax.Array) -> jax.Array:
    """The next-token loss."""
    x = jnp.take(params["embedding"], tokens[:, :-1], axis=0)
    x = layers(block, x, params["layers"])
    return cross_entropy(norm(x, params["norm"]) @ params["out"], tokens[:, 1:])


def grouped_query(*, depth: int = 2, scan: bool = False, train: bool = True) -> jax.stages.Lowered:
    """Lowers the model with `depth` layers, unrolled or scanned, forward or as a train step."""
    params = {
        "embedding": array((VOCABULARY, WIDTH), "model", "fsdp"),
        "layers": stack(LAYER, depth) if scan else [LAYER] * depth,
        "norm": array((WIDTH,), None),
        "out": array((WIDTH, VOCABULARY), "fsdp", "model"),
    }
    tokens = array((BATCH_SIZE, SEQUENCE + 1), BATCH, None, dtype=jnp.int32)
    return lower_loss(loss, params, tokens, train=train)
