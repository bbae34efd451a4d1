"""Random inputs take after what the program asks of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.sharding import NamedSharding, PartitionSpec
from shardlog.executing.domains import domains
from shardlog.executing.inputs import random_inputs
from shardlog.executing.values import boundary

from ..support.programs import mesh


def shape(*sizes: int, dtype: Any = np.float32) -> Any:
    return jax.ShapeDtypeStruct(sizes, dtype)  # type: ignore[no-untyped-call]


def asked(f: Any, *arguments: Any) -> list[set[str]]:
    """What a function asks of its arguments: "positive", "index 8"."""
    result = shardlog.run(jax.jit(f, keep_unused=True).lower(*arguments))
    return [{f"{d.kind} {d.below}".removesuffix(" 0") for d in each} for each in domains(result.result)]


def placed() -> NamedSharding:
    return NamedSharding(mesh(), PartitionSpec("data"))  # type: ignore[no-untyped-call]


X, INDICES = shape(16), shape(8, dtype=np.int32)
I32 = shape(dtype=np.int32)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (jnp.sqrt, {"positive"}),
        (lambda x: jnp.log(3 * x.reshape(4, 4).sum(0)), {"positive"}),
        (lambda x: 1 / x, {"positive"}),
        (lambda x: jax.lax.rsqrt(jnp.mean(x * x) + 1e-6) * x, set()),  # squares are
        (jax.nn.log_softmax, set()),  # exponentials are
        (lambda x: jnp.sqrt(1 - x * x), {"unit"}),
        (jnp.arctanh, {"unit"}),
        (jax.jit(lambda x: jax.jit(jnp.sqrt)(x)), {"positive"}),  # in functions
        (lambda x: jax.lax.fori_loop(0, 3, lambda _, y: jnp.sqrt(y), x), {"positive"}),
        (lambda x: jax.lax.scan(lambda y, z: (z, y), x, jnp.ones((4, 16)))[0] + jnp.log(x), {"positive"}),
        (lambda x: jax.lax.cond(x.shape[0] > 3, jnp.sqrt, jnp.log, x), {"positive"}),
        (lambda x: jnp.log(jax.lax.with_sharding_constraint(x, placed())), {"positive"}),  # type: ignore[no-untyped-call]
        (lambda x: jnp.tanh(x) - x, set()),
    ],
)
def test_roots_and_their_like_ask_for_what_they_can_take(f: Any, expected: set[str]) -> None:
    assert asked(f, X) == [expected]


def test_what_a_loop_hands_round_is_asked_of_all_that_comes_round() -> None:
    """The root is of the third value, which was the first two turns ago."""

    def f(x: Any, y: Any, z: Any) -> Any:
        return jax.lax.fori_loop(0, 5, lambda _, c: (c[1], c[2], c[0] + jnp.sqrt(c[2])), (x, y, z))

    assert asked(f, X, X, X) == [{"positive"}] * 3


def test_places_lie_in_the_table() -> None:
    def f(table: Any, rows: Any, start: Any, at: Any, added: Any) -> Any:
        window = jax.lax.dynamic_slice(table, (start, 0), (12, 4))
        written = jax.lax.dynamic_update_slice(table, window, (at, at))
        return table[rows], written.at[added].add(1.0)

    assert asked(f, shape(32, 4), INDICES, I32, I32, INDICES) == [
        set(),
        {"index 32"},
        {"index 21"},
        {"index 21", "index 1"},
        {"index 32"},
    ]


def test_optimizers_have_moments_and_counts() -> None:
    def adam(p: Any, g: Any, m: Any, v: Any, count: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * (g * g)
        return p - (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.99**count)) + 1e-8), m, v

    assert asked(adam, X, X, X, X, I32) == [set(), set(), set(), {"positive"}, {"positive"}]


def test_keys_are_bits_and_matrices_definite() -> None:
    key = shape(2, dtype=np.uint32)
    assert asked(lambda key: jax.random.normal(key, (8,)), key) == [{"bits"}]
    assert asked(
        lambda key: jax.random.bits(jax.random.wrap_key_data(key, impl="rbg")), shape(4, dtype=np.uint32)
    ) == [{"bits"}]
    assert asked(jnp.linalg.cholesky, shape(8, 8)) == [{"definite"}]


def test_inputs_are_drawn_so() -> None:
    def f(x: Any, table: Any, rows: Any, key: Any, matrix: Any, inside: Any, count: Any, flag: Any) -> Any:
        drawn = jax.random.normal(jax.random.wrap_key_data(key), (4,))
        found = jnp.log(x), table[rows], drawn, jnp.linalg.cholesky(matrix), jnp.arcsin(inside), x / count
        return *found, jnp.where(flag, x, 0)

    kinds = X, shape(3, 4), INDICES, shape(2, dtype=np.uint32), shape(2, 8, 8), X, I32, shape(dtype=np.bool_)
    result = shardlog.run(jax.jit(f).lower(*kinds))
    drawn = random_inputs(boundary(result.result)[0], 0, domains(result.result))
    x, _, rows, key, matrix, inside, count, flag = drawn
    assert all(
        array.dtype == kind.dtype and array.shape == kind.shape
        for array, kind in zip(drawn, kinds, strict=True)
    )
    assert x.min() > 0
    assert set(rows) <= {0, 1, 2}
    assert key.max() > 1 << 16
    assert np.linalg.eigvalsh(matrix).min() > 0.5
    assert 0 < inside.min() < inside.max() < 1
    assert 1 <= count < 10
    assert flag.dtype == np.bool_
    assert all(np.isfinite(each).all() for each in jax.tree.leaves(jax.jit(f)(*drawn)))
    for one, other in zip(
        drawn, random_inputs(boundary(result.result)[0], 0, domains(result.result)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_rules_of_users_say_what_their_ops_take(tmp_path: Path) -> None:
    rules, module = tmp_path / "my.dl", tmp_path / "m.mlir"
    rules.write_text('elementwise_op("my.root").\nasks_op("my.root", 0, "positive").\n')
    module.write_text("""\
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %x, %x : tensor<8xf32>
  %1 = "my.root"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
""")
    (found,) = domains(shardlog.run(module, rules=[rules]).result)
    assert {domain.kind for domain in found} == {"positive"}
