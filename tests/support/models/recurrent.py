"""Models that carry a state: an LSTM language model, and decoding with a key-value cache."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from . import dense
from .common import BATCH, array, cross_entropy, layers, lower, lower_loss, norm, stack

VOCABULARY, WIDTH, SEQUENCE, BATCH_SIZE = 64, 32, 8, 8

Carry = tuple[jax.Array, jax.Array]


def lstm_layer(x: jax.Array, p: dict[str, jax.Array], scan: bool) -> jax.Array:
    """One layer over (batch, sequence, width); time is scanned or unrolled."""

    def cell(carry: Carry, step: jax.Array) -> tuple[Carry, jax.Array]:
        state, memory = carry
        gates = step @ p["input"] + state @ p["state"] + p["bias"]
        forget, update, out, new = jnp.split(gates, 4, axis=-1)
        memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(update) * jnp.tanh(new)
        state = jax.nn.sigmoid(out) * jnp.tanh(memory)
        return (state, memory), state

    start = jnp.zeros((x.shape[0], WIDTH), x.dtype)
    states = jax.lax.scan(cell, (start, start), x.swapaxes(0, 1), unroll=1 if scan else x.shape[1])[1]
    return states.swapaxes(0, 1)


def lstm(*, depth: int = 2, scan: bool = True, train: bool = True) -> jax.stages.Lowered:
    """Lowers a language model of `depth` LSTM layers."""
    layer = {
        "input": array((WIDTH, 4 * WIDTH), "fsdp", "model"),
        "state": array((WIDTH, 4 * WIDTH), "fsdp", "model"),
        "bias": array((4 * WIDTH,), "model"),
    }

    def loss(params: dict[str, Any], tokens: jax.Array) -> jax.Array:
        x = layers(lambda x, p: lstm_layer(x, p, scan), params["embedding"][tokens[:, :-1]], params["layers"])
        return cross_entropy(x @ params["out"], tokens[:, 1:])

    params = {
        "embedding": array((VOCABULARY, WIDTH), "model", "fsdp"),
        "layers": [layer] * depth,
        "out": array((WIDTH, VOCABULARY), "fsdp", "model"),
    }
    tokens = array((BATCH_SIZE, SEQUENCE + 1), BATCH, None, dtype=jnp.int32)
    return lower_loss(loss, params, tokens, train=train)


def attend(
    x: jax.Array, p: dict[str, jax.Array], cache: Carry, position: jax.Array
) -> tuple[jax.Array, Carry]:
    """One layer for one new token: its key and value go into the cache, its query reads the whole cache."""
    batch = x.shape[0]
    y = norm(x, p["norm1"])
    q, k, v = ((y @ p[w]).reshape(batch, 1, dense.HEADS, -1) for w in ("query", "key", "value"))
    keys = jax.lax.dynamic_update_slice(cache[0], k, (0, position, 0, 0))
    values = jax.lax.dynamic_update_slice(cache[1], v, (0, position, 0, 0))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, keys)
    scores = jnp.where(jnp.arange(keys.shape[1]) <= position, scores, -jnp.inf)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), values)
    x = x + mixed.reshape(x.shape) @ p["out"]
    return x + jax.nn.gelu(norm(x, p["norm2"]) @ p["up"]) @ p["down"], (keys, values)


def decode(*, depth: int = 2, scan: bool = False, train: bool = False) -> jax.stages.Lowered:
    """Lowers one step of greedy decoding (`scan`: the layers are scanned, and their caches with them)."""
    assert not train, "decoding is not trained"
    shape = (BATCH_SIZE, 32, dense.HEADS, dense.WIDTH // dense.HEADS)
    cache = (array(shape, BATCH, None, "model", None), array(shape, BATCH, None, "model", None))

    def step(params: dict[str, Any], caches: Any, token: jax.Array, position: jax.Array) -> Any:
        x = params["embedding"][token][:, None]
        if scan:

            def layer(x: jax.Array, xs: tuple[Any, Carry]) -> tuple[jax.Array, Carry]:
                return attend(x, xs[0], xs[1], position)

            x, caches = jax.lax.scan(layer, x, (params["layers"], caches))
        else:
            new = []
            for p, old in zip(params["layers"], caches, strict=True):
                x, updated = attend(x, p, old, position)
                new.append(updated)
            caches = new
        return jnp.argmax(x[:, 0] @ params["embedding"].T, -1), caches, position + 1

    params = {
        "embedding": array((dense.VOCABULARY, dense.WIDTH), "model", "fsdp"),
        "layers": stack(dense.LAYER, depth) if scan else [dense.LAYER] * depth,
    }
    caches = stack(cache, depth) if scan else [cache] * depth
    token = array((BATCH_SIZE,), BATCH, dtype=jnp.int32)
    return lower(step, params, caches, token, array((), dtype=jnp.int32))
