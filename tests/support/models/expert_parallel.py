"""A transformer with experts on their own devices, in `jax.shard_map`: tokens go to them and come back.

Operands of the computations come from calls, loops and branches, as they do in real programs, the attention
is manual along some axes of the mesh only, and ops with several results stand before and inside of them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from .common import MESH, array, cross_entropy, layers, lower_loss, norm, stack

VOCABULARY, WIDTH, HIDDEN, EXPERTS, SEQUENCE, BATCH_SIZE = 128, 32, 64, 4, 16, 8
CAPACITY = 8

LAYER = {
    "attention": array((WIDTH, 3 * WIDTH), "fsdp", "model"),
    "router": array((WIDTH, EXPERTS)),
    "up": array((EXPERTS, WIDTH, HIDDEN), "model", "fsdp", None),
    "down": array((EXPERTS, HIDDEN, WIDTH), "model", None, "fsdp"),
    "norm": array((WIDTH,), None),
}


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Attention on a part of the batch."""
    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k), -1)
    return jnp.einsum("bqk,bkd->bqd", weights, v)


def experts(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """The experts of a device, on what all devices send them."""

    def exchanged(x: jax.Array, split: int, joined: int) -> Any:
        return jax.lax.all_to_all(x, "model", split, joined, tiled=True)  # type: ignore[no-untyped-call]

    sent = exchanged(x.reshape(x.shape[0], EXPERTS, -1, WIDTH), 1, 2)
    hidden = jax.nn.relu(jnp.einsum("betd,edh->beth", sent, up))
    experts = jnp.einsum("beth,ehd->betd", hidden, down)
    best, _ = jax.lax.top_k(experts, 2)  # several results, inside
    return jnp.reshape(exchanged(experts + best.sum(-1, keepdims=True), 2, 1), x.shape)


manual: Any = partial(jax.shard_map, mesh=MESH, check_vma=False)
DATA, BATCH, MODEL = P("data"), P(("data", "fsdp")), P("model")  # type: ignore[no-untyped-call]
# The other axes are left to propagation.
attend = manual(attention, in_specs=(DATA, DATA, DATA), out_specs=DATA, axis_names={"data"})
exchange = manual(experts, in_specs=(BATCH, MODEL, MODEL), out_specs=BATCH)


@jax.jit
def gate(x: jax.Array, router: jax.Array) -> jax.Array:
    """The tokens weighed by their best expert."""
    best, which = jax.lax.top_k(jax.nn.softmax(x @ router, -1), 2)
    return jnp.where(which[..., :1] > 0, x * best[..., :1], x)


def halved(x: jax.Array) -> jax.Array:
    """A loop that runs until nothing is large."""
    return jax.lax.while_loop(lambda t: jnp.abs(t).max() > 8, lambda t: t * 0.5, x)


@jax.checkpoint
def block(x: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    """One layer."""
    y = norm(x, p["norm"])
    q, k, v = jnp.split(y @ p["attention"], 3, -1)
    y = attend(jax.nn.relu(q), jax.nn.silu(k), jnp.where(v > 0, v, 0.1 * v))
    y, _ = jax.lax.scan(lambda c, _: (jnp.tanh(c), None), x + y, None, length=2)
    routed = exchange(gate(y, p["router"]), p["up"], p["down"])
    mixed: jax.Array = x + attend(routed, halved(jax.lax.stop_gradient(routed)), routed)
    return mixed


def loss(params: dict[str, Any], tokens: jax.Array) -> jax.Array:
    """The next-token loss."""
    x = layers(block, params["embedding"][tokens[:, :-1]], params["layers"])
    return cross_entropy(x @ params["embedding"].T, tokens[:, 1:])


def expert_parallel(*, depth: int = 2, scan: bool = False, train: bool = True) -> jax.stages.Lowered:
    """Lowers the model with `depth` layers, unrolled or scanned, forward or as a train step."""
    params = {
        "embedding": array((VOCABULARY, WIDTH), None, "fsdp"),
        "layers": stack(LAYER, depth) if scan else [LAYER] * depth,
    }
    tokens = array((BATCH_SIZE, SEQUENCE + 1), "data", None, dtype=jnp.int32)
    return lower_loss(loss, params, tokens, train=train)
