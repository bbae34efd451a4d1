"""Decided functions under JAX's transformations: the numbers of ``jax.jit``, decided anew, each once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.sharding import Mesh, NamedSharding

from ..support.drawing import by_day
from ..support.models import common, dense
from ..support.programs import P, mesh

Jit = Callable[..., Any]
JITS: dict[str, Jit] = {"xla": shardlog.jit, "shardlog": partial(shardlog.jit, partitioner="shardlog")}


@pytest.fixture(params=JITS)
def jit(request: pytest.FixtureRequest) -> Jit:
    return JITS[request.param]


def put(shape: tuple[int, ...], *spec: str | None) -> Any:
    sharding = NamedSharding(mesh(), P(*spec))  # type: ignore[no-untyped-call]
    return jax.device_put(np.random.default_rng(0).random(shape, np.float32) / 10, sharding)


def loss(params: Any, x: Any) -> Any:
    def layer(carry: Any, w: Any) -> Any:
        return carry + jnp.tanh(carry @ w), None

    return jnp.mean(jax.lax.scan(layer, x, params["layers"])[0] ** 2)


def inputs() -> tuple[Any, Any]:
    return {"layers": put((3, 16, 16), None, None, "model")}, put((8, 16), "data")


def mixed(x: Any, n: Any, y: Any) -> Any:
    """Some results move with some arguments."""
    return jnp.sin(x) * n, n + 1, {"y": y * y[::-1], "one": jnp.ones(3)}


V = np.arange(1, 5, dtype=np.float32) / 3


def hidden(jit: Jit) -> Any:
    """A derivative with respect to what a function closes over."""
    return jax.grad(lambda w: jit(lambda x: (x @ w["layers"][0]).sum())(inputs()[1]))(inputs()[0])


def summed(axis: str, x: Any) -> Any:
    return x / jax.lax.psum(x, axis)  # type: ignore[no-untyped-call]


def repeated(f: Any, x: Any) -> Any:
    return jax.lax.scan(lambda c, _: (f(c, 2, c)[0], c), x, None, 3)[0].sum()


BOUNDARY: dict[str, Any] = {
    "in_shardings": NamedSharding(mesh(), P("data")),  # type: ignore[no-untyped-call]
    "out_shardings": NamedSharding(mesh(), P("model")),  # type: ignore[no-untyped-call]
}
CASES: dict[str, Callable[[Jit], Any]] = {
    "grad": lambda jit: jax.grad(jit(loss))(*inputs()),
    "grad of both": lambda jit: jax.value_and_grad(jit(loss), argnums=(0, 1))(*inputs()),
    "grad inside of jit": lambda jit: jax.jit(jax.grad(jit(loss)))(*inputs()),
    "jit of grad": lambda jit: jit(jax.grad(loss))(*inputs()),
    "jvp": lambda jit: jax.jvp(jit(loss), inputs(), inputs()),
    "jvp of some": lambda jit: jax.jvp(lambda x: jit(mixed)(x, 2, V), (V,), (V,)),
    "jvp inside of jit": lambda jit: jax.jit(lambda x: jax.jvp(jit(loss), x, x))(inputs()),
    "vjp": lambda jit: jax.vjp(lambda x, y: jit(mixed)(x, 2.0, y)[::2], V, V)[1]((V, {"y": V, "one": V[:3]})),
    "linearize": lambda jit: jax.linearize(jit(loss), *inputs())[1](*inputs()),
    "linear_transpose": lambda jit: jax.linear_transpose(jit(lambda x: 2 * x[::-1]), V)(V),
    "jacfwd": lambda jit: jax.jacfwd(lambda x: jit(mixed)(x, 2.0, x)[2]["y"])(V),
    "jacrev": lambda jit: jax.jacrev(lambda x: jit(mixed)(x, 2.0, x)[2]["y"])(V),
    "hessian": lambda jit: jax.hessian(lambda x: jit(mixed)(x, 2.0, x)[0].sum())(V),
    "grad of grad": lambda jit: jax.grad(lambda x: jax.grad(lambda x: jit(jnp.sin)(x))(x) ** 2)(0.5),
    "vmap": lambda jit: jax.vmap(jit(loss), (None, 0))(inputs()[0], inputs()[1][:, None]),
    "vmap out": lambda jit: jax.vmap(lambda x: jit(mixed)(x, 2, V), out_axes=0)(np.ones((3, 4))),
    "vmap with a name": lambda jit: jax.vmap(jit(partial(summed, "i")), axis_name="i")(V),
    "grad of vmap": lambda jit: jax.grad(lambda x: jax.vmap(jit(jnp.sin))(x).sum())(V),
    "vmap of grad": lambda jit: jax.vmap(jax.grad(jit(lambda x: jnp.sin(x) * x)))(V),
    "checkpoint": lambda jit: jax.grad(jax.checkpoint(jit(loss)))(*inputs()),
    "in a loop": lambda jit: jax.grad(partial(repeated, jit(mixed)))(V),
    "integers and keys": lambda jit: jax.grad(lambda x: jit(noisy)(jax.random.key(0), 3, x)[1].sum())(V),
    "static": lambda jit: jax.grad(lambda x: jit(jnp.power, static_argnums=1)(x, 3).sum())(V),
    "shardings": lambda jit: jax.grad(lambda x: jit(jnp.sin, **BOUNDARY)(x).sum())(put((8, 16), "data")),
    "hidden": hidden,
}


def noisy(key: Any, n: Any, x: Any) -> Any:
    key, used = jax.random.split(key)
    return key, x * n + jax.random.normal(used, x.shape)


# By day each case with one of the two.
IN_TURN = [([*JITS][number % 2], case) for number, case in enumerate(CASES)]


@pytest.mark.parametrize(("name", "case"), by_day(IN_TURN, product(JITS, CASES)))
def test_numbers_are_those_of_jax(name: str, case: str) -> None:
    ours, theirs = CASES[case](JITS[name]), CASES[case](jax.jit)
    same: Any = jax.tree.structure(ours)
    assert same == jax.tree.structure(theirs)
    for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert mine.dtype == other.dtype
        if mine.dtype != jax.dtypes.float0:
            np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("transform", "programs"),
    [(jax.grad, 2), (lambda f: lambda x: jax.jvp(f, (x,), (x,)), 1), (jax.vmap, 1)],
)
def test_each_program_is_decided_once(transform: Any, programs: int, decisions: list[Any]) -> None:
    """The forward pass and the backward pass are two, and the next step of training has the same."""
    ours = shardlog.jit(lambda x: jnp.sin(x).sum())
    for _ in range(3):
        transform(ours)(V)
    assert len(decisions) == programs
    ours.clear_cache()
    transform(ours)(V)
    assert len(decisions) == 2 * programs


def test_derivatives_are_without_annotations(jit: Jit) -> None:
    """They name values of the function itself."""
    ours = jit(lambda x, w: (x @ w).sum(), annotate={"w": P("model")})  # type: ignore[no-untyped-call]
    x, w = put((8, 16), "data"), put((16, 16))
    np.testing.assert_allclose(jax.grad(ours)(x, w), jax.grad(lambda x: (x @ w).sum())(x), rtol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"partitioner": "xla"}, id="xla", marks=pytest.mark.nightly),
        pytest.param({"partitioner": "shardlog"}, id="as decided", marks=pytest.mark.nightly),
        pytest.param(
            {"partitioner": "shardlog", "keep_shardings": False, "topology": "v5e", "memory": 1 << 30},
            id="least time",
        ),
    ],
)
def test_jit_trains_as_jax_does(options: dict[str, Any]) -> None:
    """Three steps of a transformer, whose layers are scanned, with Adam."""
    devices = Mesh(np.array(jax.devices("cpu")[:8]).reshape(2, 2, 2), common.MESH.axis_names)
    rng = np.random.default_rng(0)

    def put(values: Any, like: Any) -> Any:
        return jax.device_put(values.astype(like.dtype), NamedSharding(devices, like.sharding.spec))

    embedding = common.array((dense.VOCABULARY, dense.WIDTH), "model", "fsdp")
    kinds = {"embedding": embedding, "layers": common.stack(dense.LAYER, 3)}
    params = jax.tree.map(lambda kind: put(rng.normal(size=kind.shape) / 10, kind), kinds)
    zeros = jax.tree.map(jnp.zeros_like, params)
    batch = common.array((dense.BATCH_SIZE, dense.SEQUENCE + 1), common.BATCH, dtype=jnp.int32)
    tokens = put(rng.integers(0, dense.VOCABULARY, batch.shape), batch)
    step = common.adam(dense.loss)
    ours, theirs = shardlog.jit(step, **options), jax.jit(step)
    count = jax.device_put(np.int32(0), NamedSharding(devices, P()))  # type: ignore[no-untyped-call]
    mine = expected = (params, zeros, zeros, count)
    for _ in range(3):
        value, *mine = ours(*mine, tokens)
        other, *expected = theirs(*expected, tokens)
        np.testing.assert_allclose(value, other, rtol=1e-5)
    for one, two in zip(jax.tree.leaves(mine), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)
    assert mine[0]["layers"]["up"].sharding.spec == P(None, "fsdp", "model")  # type: ignore[no-untyped-call]


HOISTED = """
import jax, jax.numpy as jnp, numpy as np, shardlog
from shardlog.tests.executing.test_transformed import inputs
numbers = jnp.arange(256.0).reshape(16, 16)
def f(x, y):
    return x @ numbers
x, y = inputs()[1], np.ones(4)
assert jax.jit(f).lower(x, y)._lowering.const_args
for options in {}, {"partitioner": "shardlog"}:
    ours = shardlog.jit(f, **options)
    for _ in range(2):
        np.testing.assert_allclose(ours(x, y), f(x, y), rtol=1e-5)
    np.testing.assert_allclose(jax.grad(lambda x: ours(x, y).sum())(x), jax.grad(lambda x: f(x, y).sum())(x))
"""


def test_constants_that_jax_hands_over() -> None:
    """As arguments, which new versions of JAX make of arrays that a function closes over."""
    environment = os.environ | {"JAX_USE_SIMPLIFIED_JAXPR_CONSTANTS": "1"}
    assert subprocess.run([sys.executable, "-c", HOISTED], env=environment).returncode == 0
