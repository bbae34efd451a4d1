"""Small JAX programs, each of some part of JAX: op by op the modules that Shardy gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardlog
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from ..support.compare import differences
from ..support.oracle import propagate

pytestmark = pytest.mark.versions

P: Any = PartitionSpec
lax: Any = jax.lax
MESH = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
EXPLICIT = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
IMAGES = ("NHWC", "HWIO", "NHWC")
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}


def array(*shape: int, spec: Any = None, dtype: Any = jnp.float32) -> Any:
    make: Any = jax.ShapeDtypeStruct
    return make(shape, dtype, sharding=None if spec is None else NamedSharding(MESH, spec))


X = array(64, 128, spec=P("data", None))
W = array(128, 256, spec=P(None, "model"))


def program(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, arguments
        return function

    return add


@program(X, W, array(256, 128))
def perceptron(x: Any, up: Any, down: Any) -> Any:
    return jax.nn.gelu(x @ up) @ down, jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w) @ down))(up)


@program(X)
def sorting(x: Any) -> Any:
    return jnp.sort(x, axis=1), jnp.argsort(x, axis=0), lax.top_k(x, 5)


@program(X)
def cumulative(x: Any) -> Any:
    scanned = lax.associative_scan(jnp.add, x)
    return jnp.cumsum(x, axis=1), jnp.cumprod(x, axis=0), scanned, lax.cummax(x, axis=1)


@program(X)
def fourier(x: Any) -> Any:
    return jnp.fft.fft(x), jnp.fft.rfft(x), jnp.fft.ifft2(x.astype(jnp.complex64))


@program(array(8, 16, 16, spec=P("data", None, None)))
def linear_algebra(x: Any) -> Any:
    positive = x @ x.swapaxes(-1, -2) + jnp.eye(16)
    solved = jax.scipy.linalg.solve_triangular(positive, x, lower=True)
    return jnp.linalg.cholesky(positive), solved, jnp.linalg.qr(x), jnp.linalg.eigh(positive)


@program(array(2, dtype=jnp.uint32), X)
def random(seed: Any, x: Any) -> Any:
    key = jax.random.wrap_key_data(seed)
    drawn = jax.random.normal(key, (64, 128)) + x, jax.random.bernoulli(key, 0.5, x.shape) * x
    return drawn, jax.random.categorical(key, x), jax.random.permutation(key, x)


@program(X, array(64, dtype=jnp.int32, spec=P("data")))
def indexing(x: Any, i: Any) -> Any:
    read = x[i], x[jnp.arange(64), i], jnp.take_along_axis(x, i[:, None], axis=1)
    return read, x.at[i].add(1.0), x.at[:, 3].set(0.0), jax.nn.one_hot(i, 128) @ x.T


@program(X)
def branches(x: Any) -> Any:
    chosen = lax.cond(x[0, 0] > 0, lambda y: y @ y.T, lambda y: -(y @ y.T), x)
    return chosen, lax.switch(jnp.int32(1), [jnp.sin, jnp.cos, jnp.tanh], x)


@program(X)
def loops(x: Any) -> Any:
    counted = lax.fori_loop(0, 5, lambda i, y: y * 2 + i, x)
    while_ = lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, jnp.tanh(c[1])), (0, x))
    return counted, while_, lax.scan(lambda carry, row: (carry + row, carry * row), x[0], x)


@program(
    array(8, 32, 32, 16, spec=P("data", None, None, None)),
    array(3, 3, 16, 32, spec=P(None, None, None, "model")),
)
def convolutions(x: Any, kernel: Any) -> Any:
    def pooled(x: Any, kernel: Any, strides: tuple[int, int]) -> Any:
        y = lax.conv_general_dilated(x, kernel, strides, "SAME", dimension_numbers=IMAGES)
        return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    grouped = lax.conv_general_dilated(
        x, kernel[:, :, :1], (2, 2), "VALID", dimension_numbers=IMAGES, feature_group_count=16
    )
    transposed = lax.conv_transpose(x, kernel, (2, 2), "SAME", dimension_numbers=IMAGES)
    gradients = jax.grad(lambda x, k: jnp.sum(pooled(x, k, (2, 2)) ** 2), (0, 1))(x, kernel)
    return pooled(x, kernel, (1, 1)), grouped, transposed, gradients


@program(array(4, 64, 8, 32, spec=P("data", None, "model", None)), array(4, 64, 8, 32), array(4, 64, 8, 32))
def attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


@program(X, W)
def batching(x: Any, w: Any) -> Any:
    rows = jax.vmap(lambda row: jnp.where(row > 0, row, jnp.exp(row)) @ w)(x)
    return rows, jax.vmap(jnp.outer)(x, x)


@program(X, W)
def shapes(x: Any, w: Any) -> Any:
    y = jnp.einsum("bd,df->bf", x, w)
    z = y.reshape(64, 4, 8, 8)
    shapes = jnp.concatenate([y, y * 2], 1), jnp.stack([y, y]), jnp.pad(y, ((0, 0), (1, 2)))
    moved = jnp.roll(y, 3, axis=0), jnp.tile(y, (2, 1)), jnp.repeat(y, 2, axis=1), y[::2, ::-1]
    folded = z.transpose(0, 2, 1, 3).reshape(64, 8, 32), jnp.einsum("bhij,bhkj->bhik", z, z)
    return shapes, moved, folded, jnp.split(y, 4, axis=1)


@program(X, W)
def derivatives(x: Any, w: Any) -> Any:
    @jax.custom_vjp
    def squashed(x: Any) -> Any:
        return jnp.tanh(x)

    squashed.defvjp(lambda x: (jnp.tanh(x), x), lambda x, g: (g * jnp.cos(x),))
    remade = jax.checkpoint(lambda x, w: jnp.sin(x @ w))
    return jax.grad(lambda w: remade(x, w).sum())(w), jax.grad(lambda w: squashed(x @ w).sum())(w)


@program(X, W)
def constraints(x: Any, w: Any) -> Any:
    def constrain(x: Any, *spec: str | None) -> Any:
        return lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))

    y = constrain(x @ w, "data", "model")
    z = constrain(y.T, "model", None)
    return constrain(jnp.tanh(z), None, "data"), z.sum(0)


@program(X, W)
def manual(x: Any, w: Any) -> Any:
    def gathered(a: Any, b: Any) -> Any:
        return lax.all_gather(a @ b, "model", axis=1, tiled=True) + lax.axis_index("model")

    whole = jax.shard_map(
        gathered,
        mesh=MESH,
        in_specs=(P("data", None), P(None, "model")),
        out_specs=P("data", None),
        check_vma=False,
    )(x, w)
    part = jax.shard_map(
        lambda a, b: lax.psum(a @ b, "data"),
        mesh=MESH,
        in_specs=(P(None, "data"), P("data", None)),
        out_specs=P(),
        axis_names={"data"},
        check_vma=False,
    )(x, w)
    return whole, part


@program(array(64, 128, spec=P("data", None), dtype=jnp.bfloat16), array(128, 256, dtype=jnp.int8))
def types(x: Any, w: Any) -> Any:
    product = (x @ w.astype(jnp.bfloat16)).astype(jnp.float32)
    bits = lax.bitcast_convert_type(x, jnp.int16), lax.population_count(w.astype(jnp.int32))
    return product, bits, jnp.isnan(x), x.astype(jnp.complex64).real


@program(X)
def reductions(x: Any) -> Any:
    spread = jnp.var(x, axis=0), jnp.linalg.norm(x), jnp.median(x, axis=1), jnp.quantile(x, 0.3, axis=0)
    return x.max(0), x.argmax(1), spread, jax.nn.logsumexp(x, axis=-1), jnp.any(x > 0, axis=1)


@program(X)
def functions(x: Any) -> Any:
    special = jax.scipy.special.erf(x), lax.erf_inv(x), jax.scipy.special.gammaln(x), lax.digamma(x)
    plain = jnp.arctan2(x, x), jnp.nextafter(x, x), lax.clamp(0.0, x, 1.0), jnp.fmod(x, x + 1), jnp.cbrt(x)
    return special, plain, lax.reduce_precision(x, 5, 10), jax.scipy.special.bessel_jn(x[0], v=2, n_iter=5)


@program(array(16, 64, 64, spec=P("data", None, None)))
def matrices(x: Any) -> Any:
    parts = jnp.tril(x), jnp.diagonal(x, axis1=1, axis2=2), jnp.trace(x, axis1=1, axis2=2)
    return parts, jnp.kron(x[0], x[1][:4, :4]), x.swapaxes(0, 2), jnp.flip(x, 1)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    check_like_shardy(*PROGRAMS[name])


# Others ask for what explicit axes do not have, such as a sort along a sharded dimension.
@pytest.mark.parametrize(
    "name", ["perceptron", "fourier", "linear_algebra", "batching", "derivatives", "types"]
)
def test_explicit_axes(name: str) -> None:
    """JAX then constrains what every op gives; since 0.11 it does so unless it is told otherwise."""
    function, arguments = PROGRAMS[name]

    def explicit(x: Any) -> Any:
        spec = () if x.sharding is None else x.sharding.spec
        make: Any = jax.ShapeDtypeStruct
        return make(x.shape, x.dtype, sharding=NamedSharding(EXPLICIT, P(*spec)))

    check_like_shardy(function, tuple(map(explicit, arguments)))


def check_like_shardy(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    text = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cpu",)).as_text()
    assert differences(shardlog.run(text, strict_shardy=True).text(), propagate(text)) == []
