"""What is said of results that are not as one device has them: wrong only where nothing else explains it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.sharding import NamedSharding
from shardlog.executing import execution
from shardlog.executing.comparing import ResultComparison
from shardlog.executing.execution import in_64_bits, module_alone
from shardlog.executing.judging import Judgement, Trial
from shardlog.executing.replicas import worst
from shardlog.exporters.plain import plain
from shardlog.exporters.wide import wide

from ..support.programs import P, array, mesh

Change = Callable[[list[Any]], list[Any]]


def lowered(f: Any, *kinds: Any) -> str:
    return str(jax.jit(f).lower(*kinds).as_text(debug_info=True))


def trial(text: str) -> Trial:
    result, devices = shardlog.run(text), jax.devices("cpu")[:8]
    return Trial(result.result, result.partition().compile(devices), devices)


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Change], None]:
    """Has a partitioned program give other results."""
    run = execution.run_partitioned

    def change(how: Change) -> None:
        monkeypatch.setattr(execution, "run_partitioned", lambda *given: how(run(*given)))

    return change


def judged(text: str, *inputs: Any) -> list[ResultComparison]:
    return list((trial(text).of(list(inputs)) if inputs else trial(text).at_random(0)).comparisons)


ROWS = array((8, 16), "data", "model")


def test_a_program_in_64_bits() -> None:
    """Casts of bits and constants keep their types; loops, functions and what they carry do not."""

    def f(x: Any, key: Any) -> Any:
        noise = jax.random.uniform(key, x.shape)
        y = jax.lax.fori_loop(0, 3, lambda _, y: jnp.cumsum(y, 1) * 0.1, x + noise)
        return y.astype(jnp.bfloat16), jnp.argmax(y, 1), jax.lax.complex(y, y), jax.nn.softmax(y)

    state = jax.ShapeDtypeStruct((2,), np.uint32)  # type: ignore[no-untyped-call]
    result = shardlog.run(lowered(f, ROWS, state))
    module = wide(plain(result.module, result.result.book.traits), result.result.book.traits)
    assert module.operation.verify()
    main = str(module).partition("func.func public @main")[2].partition("\n")[0]
    assert "f32" not in main
    assert all(kind in main for kind in ("8x16xf64", "8xi32", "8x16xcomplex<f64>", "2xui32"))
    run = in_64_bits(module_alone(result.result, module, jax.devices("cpu")[:1]))
    x, key = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32), np.array([1, 2], np.uint32)
    for mine, theirs in zip(run([x, key]), jax.jit(f)(x, key), strict=True):
        assert mine.dtype.itemsize in (4, 8, 16)
        np.testing.assert_allclose(mine, np.asarray(theirs, mine.dtype), rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize("times", [2, 1000])
def test_64_bits_say_who_is_right(times: float, changed: Callable[[Change], None]) -> None:
    """Beyond what sums in another order explain, and yet no further from 64 bits than rounding leads."""
    text = lowered(lambda x: jnp.cos(1000 * x), ROWS)
    x = np.random.default_rng(0).random((8, 16), np.float32)
    (one,) = judged(text, x)
    changed(lambda found: [found[0] + np.float32(times * one.allowed)])
    (other,) = judged(text, x)
    assert other.off > other.allowed
    assert other.right == (times == 2)
    assert (other.exact is not None) == other.right
    assert ("from 64 bits it is off by" in str(other)) == other.right


def test_what_rounding_decides_is_not_judged_and_says_by_which_op(
    changed: Callable[[Change], None],
) -> None:
    """Two sums that are equal but for their order: either may be the larger one."""

    def ties(x: Any) -> Any:
        one, other = x.sum(0), x[::-1].sum(0) * (1 + 1e-7)
        return jnp.argmax(jnp.stack([one, other]), 0)

    text = lowered(ties, array((64, 512), "data", "model"))
    changed(lambda found: [1 - found[0]])  # as another order of sums would have it
    (one,) = judged(text)
    assert one.right and not one.judged
    assert "rounding decides" in one.reason and "goes another way for" in one.reason
    assert "test_judging.py:" in one.reason
    assert one.as_json()["right"] is None and one.as_json()["reason"] == one.reason


@pytest.mark.parametrize("wrong", [0.01, np.nan])
def test_what_is_wrong_is_wrong(wrong: float, changed: Callable[[Change], None]) -> None:
    text = lowered(lambda x: (jnp.tanh(x) @ x.T, jnp.argmax(x, 1)), ROWS)

    def damage(found: list[Any]) -> list[Any]:
        one, other = found[0].copy(), found[1].copy()
        one[2, 3] += wrong
        other[5] += 1
        return [one, other]

    changed(damage)
    judged = trial(text).at_random(3)
    assert judged.seeds == (3, 4, 5)
    assert [one.right for one in judged.comparisons] == [False, False]
    assert all("WRONG" in str(one) for one in judged.comparisons)


def test_two_more_seeds_before_a_result_is_called_wrong(changed: Callable[[Change], None]) -> None:
    """Off by a little more than is allowed, once."""
    text, calls = lowered(lambda x: x @ x.T, ROWS), iter(range(100))

    def damage(found: list[Any]) -> list[Any]:
        return [found[0] + np.abs(found[0]).max() * np.float32(1e-4)] if next(calls) == 0 else found

    changed(damage)
    judged: Judgement = trial(text).at_random(0)
    (one,) = judged.comparisons
    assert judged.seeds == (0, 1, 2)
    assert one.right and not one.judged
    assert "with seed 0 alone, and not with 1 and 2" in str(one)


@pytest.mark.parametrize("solved", [False, True])
def test_turns_of_a_solver_are_as_rounding_has_them(solved: bool, changed: Callable[[Change], None]) -> None:
    """A turn more, once: so much rounding may do, but not in a program that knows whole numbers alone."""

    def f(x: Any, n: Any) -> Any:
        def turn(state: Any) -> Any:
            return state[0] * 0.5, state[1] + 1

        return (jax.lax.while_loop(lambda s: jnp.max(s[0]) > 1e-3, turn, (x, n))[1] if solved else n * 2), x

    kind = jax.ShapeDtypeStruct((), np.int32)  # type: ignore[no-untyped-call]
    text, calls = lowered(f, ROWS, kind), iter(range(100))
    changed(lambda found: [found[0] + (next(calls) == 0), found[1]])
    one, _ = trial(text).at_random(0).comparisons
    assert one.right == solved and one.judged != solved


def test_who_wins_a_tie_is_no_matter_of_rounding(changed: Callable[[Change], None]) -> None:
    text = lowered(lambda x: jnp.argmax(x, 1), ROWS)
    x = np.ones((8, 16), np.float32)
    changed(lambda found: [found[0] + 4])
    (one,) = judged(text, x)
    assert not one.right and one.judged


def mapped(body: Any, out: Any) -> Any:
    specs = (P("data", None), P(None, "model"))  # type: ignore[no-untyped-call]
    return jax.shard_map(body, mesh=mesh(), in_specs=specs, out_specs=out, check_vma=False)


@pytest.mark.parametrize("summed", [False, True])
def test_what_has_no_defined_meaning_is_not_judged(summed: bool) -> None:
    """A sum over the rows of each device, which out_specs call that of all, used in other parts."""

    def f(x: Any, w: Any) -> Any:
        def body(x: Any, w: Any) -> Any:
            own = x.sum(0)
            return (jax.lax.psum(own, "data") if summed else own) @ w  # type: ignore[no-untyped-call]

        y = mapped(body, P("model"))(x, w)  # type: ignore[no-untyped-call]
        other = NamedSharding(mesh(), P("data"))  # type: ignore[no-untyped-call]
        z = jax.lax.with_sharding_constraint(jnp.tanh(y), other)  # type: ignore[no-untyped-call]
        return z, (y * jnp.arange(8)).sum(), 2 * x

    verdicts = judged(lowered(f, array((8, 16)), array((16, 8))))
    assert verdicts[2].off == 0
    if summed:
        assert all(one.right and one.judged for one in verdicts)
    else:
        said = "devices differ along axis 'data', which out_specs call replicated, at "
        assert all(one.right and not one.judged and one.reason.startswith(said) for one in verdicts[:2])


TOKENS = """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%t: !stablehlo.token, %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (!stablehlo.token, tensor<8xf32>) {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  %1 = stablehlo.after_all %t : !stablehlo.token
  return %1, %0 : !stablehlo.token, tensor<8xf32>
}
"""


@pytest.mark.parametrize("form", ["sdy-manual", "manual", "replica"])
def test_tokens_are_no_data(form: Any) -> None:
    result, devices = shardlog.run(TOKENS), jax.devices("cpu")[:2]
    (one,) = Trial(result.result, result.partition(form).compile(devices), devices).at_random(0).comparisons
    assert one.right and one.judged


def test_copies_that_differ_are_wrong() -> None:
    """Each device's copy of a result counts, not the first alone."""
    held = NamedSharding(mesh(), P())  # type: ignore[no-untyped-call]
    parts = [jax.device_put(np.array([1, i == 5], np.float32), d) for i, d in enumerate(mesh().devices.flat)]
    copies = jax.make_array_from_single_device_arrays((2,), held, parts)
    np.testing.assert_array_equal(worst(copies, np.array([1, 0], np.float32)), [1, 1])
    np.testing.assert_array_equal(worst(copies, np.array([1, 1], np.float32)), [1, 0])


def test_what_has_nothing_but_nans_tells_nothing() -> None:
    text = lowered(lambda x: (jnp.sqrt(x), jnp.where(x < 0, x, 0)), array((8,), "data"))
    one, other = judged(text, np.full(8, -1, np.float32))
    assert str(one).endswith("cannot be judged: one device has nothing but NaNs, too")
    assert one.right and not one.judged and other.right and other.judged
    one, _ = judged(text, np.arange(-2, 6, dtype=np.float32))
    assert str(one).endswith("is equal, with NaNs in 2 of 8 elements")


DONATED = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8xf32> {SHARDED, mhlo.memory_kind = "pinned_host", tf.aliasing_output = 0 : i32})
    -> (tensor<8xf32> {SHARDED, mhlo.memory_kind = "pinned_host"}) {
  %0 = stablehlo.add %a, %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
""".replace("SHARDED", 'sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>')


def test_what_is_donated_in_the_memory_of_the_host() -> None:
    result, devices = shardlog.run(DONATED), jax.devices("cpu")[:4]
    (one,) = Trial(result.result, result.partition().compile(devices), devices).at_random(0).comparisons
    assert one.right and one.judged


FAILS = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %1 = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


def test_what_fails_while_it_is_waited_for_is_told() -> None:
    result, devices = shardlog.run(FAILS), jax.devices("cpu")[:4]
    with pytest.raises(shardlog.ShardlogError, match="the program fails while it runs"):
        Trial(result.result, result.partition().compile(devices), devices).at_random(0)


def test_results_of_inputs_of_few_bits_are_judged_by_their_own_type() -> None:
    """A change in the last bit of an element of float8 changes a product by far more than rounding. Scales of
    float8_e8m0fnu are drawn positive: that type has no signs."""

    def few(shape: tuple[int, ...], kind: Any) -> Any:
        return jax.ShapeDtypeStruct(shape, kind, sharding=ROWS.sharding)  # type: ignore[no-untyped-call]

    def f(x: Any, w: Any, scale: Any) -> Any:
        return x @ (w.astype(jnp.float32) * jnp.tile(scale.astype(jnp.float32), (2, 1)))

    (one,) = judged(lowered(f, ROWS, few((16, 32), jnp.float8_e4m3fn), few((8, 32), jnp.float8_e8m0fnu)))
    assert one.judged and one.right and not one.nans
