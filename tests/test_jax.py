"""JAX's side of the API: functions in, shardings out that JAX takes as they are."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax import sharding
from jax.sharding import AbstractMesh, AxisType, Mesh

pytestmark = pytest.mark.versions

Tree = Any
P: Any = sharding.PartitionSpec  # which have no types
NamedSharding: Any = sharding.NamedSharding
Abstract: Any = jax.ShapeDtypeStruct


def mesh_of(kind: AxisType = AxisType.Auto) -> Mesh:
    """Eight CPU devices."""
    return jax.make_mesh((2, 4), ("data", "model"), axis_types=(kind, kind))


class Moments(NamedTuple):
    """A state as optimizers have it."""

    step: jax.Array
    first: Tree
    second: Tree


def loss(params: Tree, tokens: jax.Array, *, heads: int) -> jax.Array:
    """A small transformer's loss."""
    x = params["embed"][tokens]
    for layer in params["layers"]:
        q, k, v = (
            (x @ layer["attention"][name]).reshape(*x.shape[:2], heads, -1) for name in ("q", "k", "v")
        )
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
        x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ layer["attention"]["o"]
        x = x + jax.nn.relu(x @ layer["up"]) @ layer["down"]
    logits = jax.nn.log_softmax(x @ params["embed"].T)
    return -jnp.mean(jnp.take_along_axis(logits[:, :-1], tokens[:, 1:, None], -1))


def train_step(
    params: Tree, state: tuple[Moments, tuple[()]], unused: Tree, tokens: jax.Array, heads: int, *, rate: Any
) -> tuple[Tree, tuple[Moments, tuple[()]], dict[str, jax.Array]]:
    """A step of Adam. The schedule's state is an empty tuple, and ``unused`` is dropped by ``jax.jit``."""
    value, grads = jax.value_and_grad(partial(loss, heads=heads))(params, tokens)
    (count, first, second), empty = state
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, grads)
    params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-6), params, first, second)
    return params, (Moments(count + 1, first, second), empty), {"loss": value}


def arguments(mesh: Mesh | AbstractMesh | None = None) -> tuple[Any, ...]:
    """Arguments of the step; with a mesh abstract ones, with shardings for tokens and two weights."""
    random = np.random.default_rng(0)

    def array(*shape: int, spec: Any = None) -> Any:
        if mesh is not None:
            sharding = None if spec is None else NamedSharding(mesh, spec)
            return Abstract(shape, jnp.float32, sharding=sharding)
        return random.normal(size=shape).astype(np.float32) * 0.1

    columns = P(None, "model")
    layers = [
        {"attention": {name: array(16, 16) for name in "qkvo"}, "up": array(16, 32), "down": array(32, 16)}
        for _ in range(2)
    ]
    layers[0]["up"] = array(16, 32, spec=columns)
    params = {"embed": array(64, 16), "layers": layers}
    zeros = jax.tree.map(lambda x: Abstract(x.shape, x.dtype) if mesh else 0 * x, params)
    tokens: Any = random.integers(0, 64, (8, 6), np.int32)
    if mesh is not None:
        tokens = Abstract((8, 6), jnp.int32, sharding=NamedSharding(mesh, P("data")))
    return params, (Moments(jnp.int32(0), zeros, zeros), ()), {"old": array(3, 3)}, tokens


def close(found: Tree, expected: Tree) -> None:
    """Asserts that two trees hold the same numbers."""
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=2e-3, atol=1e-4)


def test_a_train_step_runs_with_its_shardings() -> None:
    mesh = mesh_of()
    jitted = jax.jit(train_step, static_argnames="heads", donate_argnums=(0, 1))
    result = shardlog.run(jitted, *arguments(mesh), heads=4, rate=jnp.float32(0.1))
    placement = result.argument_shardings
    params, (state, empty), unused, tokens = placement
    assert params["embed"].mesh is mesh
    assert params["layers"][0]["up"].spec == P(None, "model")
    assert params["layers"][0]["down"].spec == P("model", None)  # from the product of the two
    assert state.first["layers"][0]["up"] == params["layers"][0]["up"] and empty == ()
    assert unused["old"].spec == P()  # dropped by jax.jit
    assert tokens.spec == P("data", None)
    assert result.keyword_shardings == {"rate": NamedSharding(mesh, P())}
    expected = jax.jit(train_step, static_argnums=4)(*arguments(), 4, rate=0.1)
    placed = jax.device_put(arguments(), placement)
    assert placed[0]["layers"][0]["up"].addressable_shards[0].data.shape == (16, 8)
    rates = jax.device_put({"rate": jnp.float32(0.1)}, result.keyword_shardings)
    step = jax.jit(
        partial(train_step, heads=4, **rates),
        in_shardings=placement,
        out_shardings=result.result_shardings,
        donate_argnums=(0, 1),
    )
    outputs = step(*placed)
    close(outputs, expected)
    assert outputs[0]["layers"][0]["up"].sharding == result.result_shardings[0]["layers"][0]["up"]


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_axis_types_are_kept(kind: AxisType) -> None:
    def product(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.tanh(x @ w)

    mesh = mesh_of(kind)
    x, w = np.ones((8, 4), np.float32), np.ones((4, 16), np.float32)
    shardings = (
        NamedSharding(mesh, P("data", None)),
        NamedSharding(mesh, P(None, "model")),
    )
    given = jax.device_put((x, w), shardings)
    for where in (mesh, mesh.abstract_mesh):
        abstract = [Abstract(a.shape, a.dtype, sharding=NamedSharding(where, a.sharding.spec)) for a in given]
        result = shardlog.run(product, *abstract)
        assert all(s.mesh.axis_types == (kind, kind) for s in result.argument_shardings)
        assert all(type(s.mesh) is type(where) for s in result.argument_shardings)
        assert result.result_shardings.spec == P("data", "model")
    result = shardlog.run(product, *given)
    with jax.set_mesh(mesh):
        step = jax.jit(product, in_shardings=result.argument_shardings)
        close(step(*jax.device_put((x, w), result.argument_shardings)), np.tanh(x @ w))


def test_random_keys_have_the_rank_that_jax_gives_them() -> None:
    mesh = mesh_of()

    def noise(x: jax.Array, keys: jax.Array) -> tuple[jax.Array, jax.Array]:
        return x + jax.vmap(lambda key: jax.random.normal(key, (4,)))(keys), keys

    x = jax.device_put(jnp.zeros((8, 4)), NamedSharding(mesh, P("data")))
    keys = jax.random.split(jax.random.key(0), 8)
    result = shardlog.run(noise, x, keys)
    step = jax.jit(noise, in_shardings=result.argument_shardings, out_shardings=result.result_shardings)
    found, same = step(*jax.device_put((x, keys), result.argument_shardings))
    assert len(result.argument_shardings[1].spec) <= 1
    close(found, noise(x, keys)[0])
    assert (same == keys).all()


def test_every_form_of_a_function_gives_the_same() -> None:
    mesh = mesh_of()

    def step(x: jax.Array, dropped: jax.Array, *, w: jax.Array) -> dict[str, jax.Array]:
        return {"y": x @ w}

    x = jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, P("data")))
    w = jnp.ones((4, 4))
    traced = jax.jit(step).trace(x, x, w=w)
    forms = [
        shardlog.run(step, x, x, w=w),
        shardlog.run(jax.jit(step), x, x, w=w),
        shardlog.run(traced),
        shardlog.run(traced.lower()),
        shardlog.run(jax.export.export(jax.jit(step), platforms=["cpu"])(x, x, w=w)),
        shardlog.explain(step, x, x, w=w),
    ]
    for result in forms:
        found, dropped = (s.spec for s in result.argument_shardings)
        assert (found, dropped) == (P("data", None), P())
        assert (
            result.keyword_shardings["w"].spec == P(None, None) or result.keyword_shardings["w"].spec == P()
        )
        assert result.result_shardings["y"].spec == P("data", None)


def test_tokens_are_not_arguments() -> None:
    def step(x: jax.Array) -> jax.Array:
        jax.debug.print("{}", x.sum(), ordered=True)
        return x + 1

    result = shardlog.run(step, jnp.ones(4), mesh="data=2")
    assert [s.spec for s in result.argument_shardings] == [P()]
    assert result.result_shardings.spec == P()


def test_a_module_without_a_mesh() -> None:
    result = shardlog.run(lambda x: x + 1, jnp.ones(4))
    assert result.argument_shardings == (None,)
    assert result.result_shardings is None


def test_options() -> None:
    basic = shardlog.Options(strategy="basic", closed=False)
    result = shardlog.run(lambda x: x + 1, jnp.ones(4), options=basic, closed=True)
    assert (result.result.options.strategy, result.result.options.closed) == ("basic", True)
    with pytest.raises(shardlog.ShardlogError, match=r"no option stratgy\n.*did you mean strategy"):
        shardlog.run("module {}", stratgy="basic")
    with pytest.raises(shardlog.ShardlogError, match="no option stratgy"):
        shardlog.run(lambda x: x, jnp.ones(4), stratgy="basic")
    with pytest.raises(shardlog.ShardlogError, match="arguments for a str"):
        shardlog.run("module {}", jnp.ones(4))
