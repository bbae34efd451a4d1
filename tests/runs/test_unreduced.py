"""JAX's unreduced arrays go into programs and come out of them, on the JAX that is installed."""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
import jax.sharding as js
import numpy as np
import pytest
import shardlog
from jax.sharding import NamedSharding, PartitionSpec

P: Any = PartitionSpec
A, B = np.random.default_rng(0).standard_normal((2, 8, 8)).astype(np.float32)


@pytest.fixture
def mesh() -> Any:
    found = js.Mesh(
        np.array(jax.devices()[:4]).reshape(2, 2), ("y", "x"), axis_types=(js.AxisType.Explicit,) * 2
    )
    with jax.set_mesh(found):
        yield found


def product(a: Any, b: Any) -> Any:
    return jax.lax.dot(a, b, out_sharding=P(None, None, unreduced={"x"}))


def reduced(a: Any) -> Any:
    return js.reshard(a, P(None, "x"))  # type: ignore[no-untyped-call]


def given() -> tuple[Any, Any]:
    return jax.device_put(A, P(None, "x")), jax.device_put(B, P("x", None))


@pytest.mark.parametrize("partitioner", ["xla", "shardlog"])
def test_jit_returns_and_takes_them(mesh: Any, partitioner: Literal["xla", "shardlog"]) -> None:
    output = shardlog.jit(product, partitioner=partitioner)(*given())
    assert output.sharding.spec == P(None, None, unreduced={"x"})
    np.testing.assert_allclose(reduced(output), A @ B, rtol=1e-4, atol=1e-5)
    taken = shardlog.jit(reduced, partitioner=partitioner)(output)
    np.testing.assert_allclose(taken, A @ B, rtol=1e-4, atol=1e-5)


def test_a_run_says_them_and_programs_have_them(mesh: Any) -> None:
    result = shardlog.run(jax.jit(product).lower(*given()))
    assert result.result_shardings == NamedSharding(mesh, P(None, None, unreduced={"x"}))
    program = result.partition()
    assert program.collectives == ()
    for executable in (result.compile(), program.compile()):
        outputs = executable(*given())
        assert outputs.sharding.spec == P(None, None, unreduced={"x"})
        np.testing.assert_allclose(reduced(outputs), A @ B, rtol=1e-4, atol=1e-5)
        back = shardlog.run(jax.jit(reduced).lower(outputs)).partition().compile()(outputs)
        np.testing.assert_allclose(back, A @ B, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
def test_annotations_may_be_unreduced(kind: str) -> None:
    """Their axes are a set; what is `reduced` is nothing that Shardy is told."""
    if kind == "sum":
        spec = P("z", unreduced={"x", "y"}, reduced={"w"})
    elif hasattr(js, "UnreducedKind"):
        spec = P("z", unreduced={"x", "y"}, reduced={"w"}, unreduced_kind=js.UnreducedKind[kind])
    else:
        pytest.skip("JAX 0.10 has sums alone")
    text = jax.jit(jnp.tanh).lower(np.ones((8, 8), np.float32)).as_text()
    every = {"%arg0": spec, "%0": spec, "result": spec}
    result = shardlog.run(text, mesh="y=2,x=2,z=2,w=2", annotate=every)
    said = f'[{{"z"}}, {{}}], unreduced={"" if kind == "sum" else kind}{{"y", "x"}}'
    assert result.text().count(said) == 3
    assert result.argument_shardings[0].spec == P("z", None, **_fixed(spec))


def _fixed(spec: Any) -> dict[str, Any]:
    kind = getattr(spec, "unreduced_kind", None)
    return {"unreduced": spec.unreduced} | ({} if kind is None else {"unreduced_kind": kind})
