"""A transformer with experts on their own devices, in `jax.shard_map`: tokens go to them and come back.

Operands of the computations come from calls, loops and branches, as they do in real programs, the attention is
manual along some axes of the mesh only, and ops with several results stand before and inside of them.
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


def manual(axes: set[str], inside: Any, outside: Any) -> Any:
    """`jax.shard_map` over the mesh, manual along `axes`."""
    return partial(
        jax.shard_map, mesh=MESH, in_specs=inside, out_specs=outside, axis_names=axes, check_vma=False
    )


@manual({"data"}, (P("data"), P("data"), P("data")), P("data"))  # the other axes are left to propagation
def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Attention on a part of the batch."""
    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k), -1)
    return jnp.einsum("bqk,bkd->bqd", weights, v)


@manual({"data", "fsdp", "model"}, (P(("data", "fsdp")), P("model"), P("model")), P(("data", "fsdp")))
def experts(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """The experts of a device, on what all devices send them."""
    shares = x.reshape(x.shape[0], EXPERTS, -1, WIDTH)
    sent = jax.lax.all_to_all(shares, "model", 1, 2, tiled=True)
    hidden = jax.nn.relu(jnp.einsum("betd,edh->beth", sent, up))
    found = jnp.einsum("beth,ehd->betd", hidden, down)
    best, _ = jax.lax.top_k(found, 2)  # several results, inside
    found = found + best.sum(-1, keepdims=True)
    return jax.lax.all_to_all(found, "model", 2, 1, tiled=True).reshape(x.shape)


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
    routed = experts(gate(y, p["router"]), p["up"], p["down"])
    return x + attend(routed, halved_forward(routed), routed)


def halved_forward(x: jax.Array) -> jax.Array:
    """`halved`, through which no gradient goes."""
    return halved(jax.lax.stop_gradient(x))


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
