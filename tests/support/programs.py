"""Small JAX programs, each with another feature of JAX, with random shardings for their arguments."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
SIZES = {"data": 2, "model": 4}
Shapes = list[tuple[int, ...]]


_meshes: list[Mesh] = []


def mesh() -> Mesh:
    """The eight CPU devices, or the mesh that the programs are on."""
    return _meshes[-1] if _meshes else Mesh(np.array(jax.devices("cpu")[:8]).reshape(2, 4), (*SIZES,))


@contextmanager
def on(mesh: Mesh) -> Iterator[None]:
    """Lowers programs for the devices of a mesh with axes data and model."""
    _meshes.append(mesh)
    try:
        yield
    finally:
        _meshes.pop()


def _scan(w: Any, x: Any) -> Any:
    def body(carry: Any, layer: Any) -> Any:
        return jnp.tanh(carry @ layer) ** 2, carry.sum()

    return jax.lax.scan(body, x, w)


def _shard_map(x: Any, w: Any) -> Any:
    def body(a: Any, b: Any) -> Any:
        return jax.lax.psum(a @ b, "model")  # type: ignore[no-untyped-call]

    specs = P("data", "model"), P("model", None), P("data", None)  # type: ignore[no-untyped-call]
    return jax.shard_map(body, mesh=mesh(), in_specs=specs[:2], out_specs=specs[2])(x, w)


def _eigh(x: Any) -> Any:
    values, vectors = jnp.linalg.eigh(x @ x.T)
    return values, vectors * jnp.sign(vectors[:1])  # rounding decides their signs


@jax.custom_vjp
def _sine(x: Any) -> Any:
    return jnp.sin(x)


_sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))


def _mlp(up: Any, down: Any, x: Any) -> Any:
    return jax.nn.gelu(x @ up) @ down


def _step(up: Any, down: Any, x: Any) -> Any:
    def loss(params: Any) -> Any:
        return jnp.mean(_mlp(params[0], params[1], x) ** 2)

    value, grads = jax.value_and_grad(loss)((up, down))
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, (up, down), grads)


def _attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k), -1) @ v.swapaxes(1, 2)


def _rematerialised(w: Any, x: Any) -> Any:
    return jax.grad(lambda w: jnp.sum(jax.checkpoint(lambda w: jnp.sin(x @ w) @ w.T)(w)))(w)


def _while(x: Any, w: Any) -> Any:
    return jax.lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, jnp.sin(c[1] @ w)), (0, x))


PROGRAMS: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "scan": (_scan, [(3, 16, 16), (8, 16)]),
    "gradient of a scan": (
        lambda w, x: jax.grad(lambda w: _scan(w, x)[0].sum())(w),
        [(3, 16, 16), (8, 16)],
    ),
    "while": (_while, [(8, 16), (16, 16)]),
    "cond": (
        lambda p, x: jax.lax.cond(p[0] > 0, lambda x: x @ x.T, lambda x: (x * 2) @ x.T, x),
        [(4,), (8, 16)],
    ),
    "remat": (_rematerialised, [(16, 32), (8, 16)]),
    "custom_vjp": (lambda x: jax.grad(lambda x: _sine(x @ x.T).sum())(x), [(8, 16)]),
    "shard_map": (_shard_map, [(8, 16), (16, 8)]),
    "mlp": (_mlp, [(16, 64), (64, 16), (8, 16)]),
    "train step": (_step, [(16, 64), (64, 16), (8, 16)]),
    "attention": (_attention, [(8, 16, 4, 8)] * 3),
    "erf and square": (lambda x, y: jax.lax.erf(x) + y**2, [(8, 16), (8, 16)]),
    "lgamma": (lambda x: jax.lax.lgamma(x) + jax.lax.digamma(x), [(8, 16)]),
    "top_k": (lambda x: jax.lax.top_k(x, 4), [(8, 64)]),
    "approx_top_k": (lambda x: jax.lax.approx_max_k(x, 4), [(8, 64)]),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(16)), [(16, 16)]),
    "qr": (lambda x: jnp.linalg.qr(x), [(16, 16)]),
    "eigh": (_eigh, [(16, 16)]),
    "fft": (lambda x: jnp.fft.rfft(x).real, [(8, 16)]),
    "sort": (lambda x: jnp.sort(x, -1), [(8, 16)]),
    "cumsum": (lambda x: jnp.cumsum(x, 1), [(8, 16)]),
    "random": (lambda x: x + jax.random.normal(jax.random.key(0), x.shape), [(8, 16)]),
    "gather": (lambda e, x: e[jnp.int32(x)], [(64, 16), (8, 4)]),
    "ragged_dot": (
        lambda x, w: jax.lax.ragged_dot(x, w, jnp.array([4, 4, 8], jnp.int32)),
        [(16, 16), (3, 16, 32)],
    ),
    "convolution": (lambda x, k: jax.lax.conv(x, k, (1, 1), "SAME"), [(8, 4, 16, 16), (8, 4, 3, 3)]),
    "where": (lambda x, y: jnp.where(x > 0, x, y) @ y.T, [(8, 16), (8, 16)]),
    "inner jit": (
        lambda x, w: jax.jit(lambda a, b: jnp.maximum(a @ b, 0))(x, w) @ w.T,
        [(8, 16), (16, 16)],
    ),
}


def lowered(name: str, seed: int) -> jax.stages.Lowered:
    """A program for eight CPU devices; ``seed`` decides the shardings of its arguments."""
    function = PROGRAMS[name][0]
    # A function of its own, for JAX remembers the mesh with which it has traced one.
    traced = wraps(function)(lambda *values: function(*values))
    return jax.jit(traced).lower(*arguments(name, seed))


def arguments(name: str, seed: int) -> list[jax.ShapeDtypeStruct]:
    """Abstract arguments for a program, with random shardings."""
    rng = random.Random(f"{name} {seed}")
    return [_argument(rng, shape) for shape in PROGRAMS[name][1]]


def array(shape: tuple[int, ...], *spec: str | None) -> jax.ShapeDtypeStruct:
    """An abstract argument on the eight devices."""
    sharding = NamedSharding(mesh(), P(*spec))  # type: ignore[no-untyped-call]
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)  # type: ignore[no-untyped-call]


def _argument(rng: random.Random, shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    if rng.random() < 0.2:
        return jax.ShapeDtypeStruct(shape, jnp.float32)  # type: ignore[no-untyped-call]
    axes = rng.sample(sorted(SIZES), len(SIZES))
    spec: list[str | None] = []
    for size in shape:
        fits = axes and rng.random() < 0.5 and size % mesh().shape[axes[0]] == 0
        spec.append(axes.pop(0) if fits else None)
    return array(shape, *spec)
