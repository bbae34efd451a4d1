"""A transformer whose feed-forward network is a mixture of experts, the experts split over an axis."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .common import array, constrain, cross_entropy, layers, lower_loss, norm, stack

VOCABULARY, WIDTH, HIDDEN, EXPERTS, CAPACITY, SEQUENCE, BATCH_SIZE = 128, 32, 64, 4, 8, 16, 8

LAYER = {
    "router": array((WIDTH, EXPERTS), None, None),
    "up": array((EXPERTS, WIDTH, HIDDEN), "model", "fsdp", None),
    "down": array((EXPERTS, HIDDEN, WIDTH), "model", None, "fsdp"),
    "norm": array((WIDTH,), None),
}


def experts(x: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    """Two experts for every token; tokens beyond an expert's capacity are dropped."""
    gates = jax.nn.softmax(x @ p["router"], -1)
    weights, chosen = jax.lax.top_k(gates, 2)
    assigned = jax.nn.one_hot(chosen, EXPERTS)  # batch, token, choice, expert
    position = jnp.cumsum(assigned.reshape(x.shape[0], -1, EXPERTS), 1).reshape(assigned.shape) - 1
    kept = assigned * (position < CAPACITY)
    slots = jax.nn.one_hot(jnp.clip(position, 0, CAPACITY - 1).astype(jnp.int32), CAPACITY)
    dispatch = jnp.einsum("btke,btkec->btec", kept, slots)
    combine = jnp.einsum("btk,btke,btkec->btec", weights, kept, slots)
    inputs = constrain(jnp.einsum("btec,btd->becd", dispatch, x), "data", "model", None, None)
    hidden = jax.nn.relu(jnp.einsum("becd,edh->bech", inputs, p["up"]))
    return jnp.einsum("btec,bech,ehd->btd", combine, hidden, p["down"])


def block(x: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    """One layer."""
    return x + experts(norm(x, p["norm"]), p)


def loss(params: dict[str, Any], tokens: jax.Array) -> jax.Array:
    """The next-token loss."""
    x = layers(block, params["embedding"][tokens[:, :-1]], params["layers"])
    return cross_entropy(x @ params["embedding"].T, tokens[:, 1:])


def mixture_of_experts(*, depth: int = 2, scan: bool = False, train: bool = True) -> jax.stages.Lowered:
    """Lowers the model with `depth` layers, unrolled or scanned, forward or as a train step."""
    params = {
        "embedding": array((VOCABULARY, WIDTH), None, "fsdp"),
        "layers": stack(LAYER, depth) if scan else [LAYER] * depth,
    }
    tokens = array((BATCH_SIZE, SEQUENCE + 1), "data", None, dtype=jnp.int32)
    return lower_loss(loss, params, tokens, train=train)
