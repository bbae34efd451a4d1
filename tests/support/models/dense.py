"""A dense decoder-only transformer: data parallel, Megatron tensor parallel and fsdp."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .common import BATCH, array, constrain, cross_entropy, layers, lower_loss, norm, stack

VOCABULARY, WIDTH, HEADS, HIDDEN, SEQUENCE, BATCH_SIZE = 256, 64, 4, 128, 16, 8

LAYER = {
    "query": array((WIDTH, WIDTH), "fsdp", "model"),
    "key": array((WIDTH, WIDTH), "fsdp", "model"),
    "value": array((WIDTH, WIDTH), "fsdp", "model"),
    "out": array((WIDTH, WIDTH), "model", "fsdp"),
    "up": array((WIDTH, HIDDEN), "fsdp", "model"),
    "down": array((HIDDEN, WIDTH), "model", "fsdp"),
    "norm1": array((WIDTH,), None),
    "norm2": array((WIDTH,), None),
}


def attention(x: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    """Causal self-attention of (batch, sequence, width)."""
    batch, sequence, width = x.shape
    q, k, v = ((x @ p[w]).reshape(batch, sequence, HEADS, -1) for w in ("query", "key", "value"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (width // HEADS) ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((sequence, sequence), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)
    return mixed.reshape(x.shape) @ p["out"]


def block(x: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    """One layer: attention and a feed-forward network, each with a residual."""
    x = x + attention(norm(x, p["norm1"]), p)
    x = x + jax.nn.gelu(norm(x, p["norm2"]) @ p["up"]) @ p["down"]
    return constrain(x, BATCH, None, None)


def loss(params: dict[str, Any], tokens: jax.Array) -> jax.Array:
    """The next-token loss; the embedding is tied to the output."""
    x = layers(block, params["embedding"][tokens[:, :-1]], params["layers"])
    return cross_entropy(x @ params["embedding"].T, tokens[:, 1:])


def transformer(*, depth: int = 2, scan: bool = False, train: bool = True) -> jax.stages.Lowered:
    """Lowers the model with `depth` layers, unrolled or scanned, forward or as a train step."""
    params = {
        "embedding": array((VOCABULARY, WIDTH), "model", "fsdp"),
        "layers": stack(LAYER, depth) if scan else [LAYER] * depth,
    }
    tokens = array((BATCH_SIZE, SEQUENCE + 1), BATCH, None, dtype=jnp.int32)
    return lower_loss(loss, params, tokens, train=train)
