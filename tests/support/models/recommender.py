"""A recommender: bags of embeddings from tables split by rows, dot interactions, and small dense networks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .common import BATCH, array, lower_loss

ROWS, WIDTH, TABLES, BAG, DENSE, BATCH_SIZE = 512, 16, 3, 4, 13, 16


def perceptron(x: jax.Array, weights: list[jax.Array]) -> jax.Array:
    """Dense layers with relu between them."""
    for w in weights[:-1]:
        x = jax.nn.relu(x @ w)
    return x @ weights[-1]


def loss(
    params: dict[str, Any], dense: jax.Array, bags: jax.Array, weights: jax.Array, clicks: jax.Array
) -> jax.Array:
    """The binary cross-entropy of predicted clicks. Identifiers are (batch, table, bag)."""
    flat = bags.transpose(1, 0, 2).reshape(TABLES, -1)
    segments = jnp.repeat(jnp.arange(BATCH_SIZE), BAG)
    pooled = []
    for table, ids, weight in zip(params["tables"], flat, weights.transpose(1, 0, 2), strict=True):
        rows = jnp.take(table, jnp.clip(ids, 0, ROWS - 1), axis=0) * weight.reshape(-1, 1)
        pooled.append(jax.ops.segment_sum(rows, segments, num_segments=BATCH_SIZE))
    vectors = jnp.stack([perceptron(dense, params["bottom"]), *pooled], 1)
    products = jnp.einsum("bid,bjd->bij", vectors, vectors)
    upper = jnp.triu_indices(TABLES + 1, k=1)
    features = jnp.concatenate([vectors[:, 0], products[:, upper[0], upper[1]]], -1)
    logits = perceptron(features, params["top"])[:, 0]
    return jnp.mean(jax.nn.softplus(logits) - clicks * logits)


def recommender(*, depth: int = 2, scan: bool = False, train: bool = True) -> jax.stages.Lowered:
    """Lowers the recommender with `depth` hidden layers in each of its dense networks."""
    assert not scan, "the layers of the recommender differ"
    pairs = TABLES * (TABLES + 1) // 2
    hidden = [array((32, 32), "fsdp", None) for _ in range(depth - 1)]
    params = {
        "tables": [array((ROWS, WIDTH), ("model", "fsdp"), None) for _ in range(TABLES)],
        "bottom": [array((DENSE, 32), None, "model"), *hidden, array((32, WIDTH), "model", None)],
        "top": [array((WIDTH + pairs, 32), None, "model"), *hidden, array((32, 1), "model", None)],
    }
    return lower_loss(
        loss,
        params,
        array((BATCH_SIZE, DENSE), BATCH, None),
        array((BATCH_SIZE, TABLES, BAG), BATCH, None, None, dtype=jnp.int32),
        array((BATCH_SIZE, TABLES, BAG), BATCH, None, None),
        array((BATCH_SIZE,), BATCH),
        train=train,
    )
