"""A model of 8 billion parameters on a pod: `python -m shardlog.tests.bench.pod`.

A train step (Adam, layers scanned and computed again, products in bf16) of a transformer with the sizes of
Llama 3 8B is compiled ahead of time with libtpu for 256 TPUs v5e, parameters in parts over both axes of the
mesh: as XLA partitions it, and as we do, with least bytes and in the least time. What is measured is as in
`tpu.py`. Each compilation takes libtpu about two minutes.
"""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from . import tpu

WIDTH, HIDDEN, HEADS, GROUPS, HEAD, VOCABULARY, LAYERS = 4096, 14336, 32, 8, 128, 128256, 32
BATCH, SEQUENCE = 128, 4096
MESH = AbstractMesh((64, 4), ("data", "model"))
Params = dict[str, Any]


def over(*axes: str | None) -> NamedSharding:
    return NamedSharding(MESH, PartitionSpec(*axes))  # type: ignore[no-untyped-call]


def array(shape: tuple[int, ...], *axes: str | None, dtype: Any = jnp.float32) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=over(*axes))  # type: ignore[no-untyped-call]


LAYER = {
    "query": array((LAYERS, WIDTH, GROUPS, HEADS // GROUPS, HEAD), None, "data", "model"),
    "key": array((LAYERS, WIDTH, GROUPS, HEAD), None, "data", "model"),
    "value": array((LAYERS, WIDTH, GROUPS, HEAD), None, "data", "model"),
    "out": array((LAYERS, GROUPS, HEADS // GROUPS, HEAD, WIDTH), None, "model", None, None, "data"),
    "gate": array((LAYERS, WIDTH, HIDDEN), None, "data", "model"),
    "up": array((LAYERS, WIDTH, HIDDEN), None, "data", "model"),
    "down": array((LAYERS, HIDDEN, WIDTH), None, "model", "data"),
    "norm1": array((LAYERS, WIDTH)),
    "norm2": array((LAYERS, WIDTH)),
}
PARAMS = {
    "layers": LAYER,
    "embedding": array((VOCABULARY, WIDTH), "model", "data"),
    "norm": array((WIDTH,)),
    "logits": array((WIDTH, VOCABULARY), "data", "model"),
}


def by_batch(x: Any) -> Any:
    """Activations, constrained to be in parts of the batch."""
    return jax.lax.with_sharding_constraint(x, over("data", None, None))  # type: ignore[no-untyped-call]


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


def layer(x: jax.Array, params: Params) -> tuple[jax.Array, None]:
    p = {name: value if name.startswith("norm") else value.astype(x.dtype) for name, value in params.items()}
    y = norm(x, p["norm1"])
    q = rotate(jnp.einsum("bsd,dgnh->bsgnh", y, p["query"]))
    k = rotate(jnp.einsum("bsd,dgh->bsgh", y, p["key"]))
    v = jnp.einsum("bsd,dgh->bsgh", y, p["value"])
    scores = jnp.einsum("bqgnh,bkgh->bgnqk", q, k).astype(jnp.float32) * HEAD**-0.5
    position = jnp.arange(SEQUENCE)
    scores = jnp.where(position[:, None] >= position, scores, -1e9)
    mixed = jnp.einsum("bgnqk,bkgh->bqgnh", jax.nn.softmax(scores, -1).astype(x.dtype), v)
    x = x + jnp.einsum("bqgnh,gnhd->bqd", mixed, p["out"])
    y = norm(x, p["norm2"])
    x = x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]
    return by_batch(x), None


def loss(params: Params, tokens: jax.Array) -> jax.Array:
    x = params["embedding"].astype(jnp.bfloat16)[tokens]
    x = by_batch(x)
    x, _ = jax.lax.scan(jax.checkpoint(layer), x, params["layers"])
    logits = (norm(x, params["norm"]) @ params["logits"].astype(x.dtype)).astype(jnp.float32)
    known = jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1]), tokens[:, 1:, None], -1)
    return -jnp.mean(known)


def step(params: Params, first: Params, second: Params, tokens: jax.Array) -> Any:
    """Adam, without what corrects its first steps."""
    value, gradient = jax.value_and_grad(loss)(params, tokens)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, second, gradient)
    params = jax.tree.map(lambda p, m, v: p - 1e-4 * m / (jnp.sqrt(v) + 1e-8), params, first, second)
    return params, first, second, value


def text() -> str:
    """The StableHLO text of the step."""
    held = jax.tree.map(lambda leaf: leaf.sharding, PARAMS)
    jitted = jax.jit(step, donate_argnums=(0, 1, 2), out_shardings=(held, held, held, over()))
    tokens = array((BATCH, SEQUENCE), "data", dtype=jnp.int32)
    traced = jitted.trace(PARAMS, PARAMS, PARAMS, tokens)
    return str(traced.lower(lowering_platforms=("tpu",)).as_text())


def main() -> None:
    """Prints what each program moves, holds and takes."""
    import shardlog
    from shardlog.program.mlir.modules import bytecode_of

    from .bytes_moved import undecided

    warnings.simplefilter("ignore")
    result, devices = shardlog.run(text()), 256
    module = undecided(result)
    with module.context:
        xla = tpu.compiled(bytecode_of(module), "16x16", devices)
    print(f"XLA: {xla.bytes:,.0f} bytes in {xla.count:,} collectives, {xla.memory:,} bytes of memory")
    for name, way in tpu.WAYS.items():
        ours = tpu.compiled(bytecode_of(result.partition(**way).module_for("tpu")), "16x16", devices)
        names = ("bytes", "memory", "peak", "cycles", "time")
        ratios = ", ".join(f"{what} {ratio:.2f}" for what, ratio in zip(names, ours.over(xla), strict=True))
        print(f"{name}: {ratios}, {ours.count:,} collectives", flush=True)


if __name__ == "__main__":
    main()
