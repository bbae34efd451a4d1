"""CHLO: shardings pass as they do through what XLA lowers its ops to."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from hypothesis import given, note
from hypothesis import strategies as st
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _stablehlo

from ..support import oracle
from ..support.compare import differences
from ..support.drawing import by_day, drawing

pytestmark = pytest.mark.versions

_stablehlo.register_stablehlo_passes()
P: Any = PartitionSpec
UNARY = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "conj", "cosh", "digamma", "erf_inv",
    "erfc", "lgamma", "sinh", "square", "tan",
)  # fmt: skip
COMPLEX = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "conj", "cosh", "sinh", "square", "tan")
TESTS = ("is_inf", "is_neg_inf", "is_pos_inf")
BINARY = (
    "next_after", "polygamma", "zeta", "broadcast_add", "broadcast_atan2", "broadcast_next_after",
    "broadcast_power",
)  # fmt: skip
OPS = [
    *((f"chlo.{n}", 1, "f32", "f32") for n in UNARY if n != "conj"),  # which is no op at all for real numbers
    *((f"chlo.{n}", 1, "complex<f32>", "complex<f32>") for n in COMPLEX),
    *((f"chlo.{n}", 1, "f32", "i1") for n in TESTS),
    *((f"chlo.{n}", 2, "f32", "f32") for n in BINARY),
    ("chlo.mulhi", 2, "i32", "i32"),
    ("chlo.broadcast_and", 2, "i32", "i32"),
]


@st.composite
def shardings(draw: st.DrawFn, *, apart: bool) -> str:
    """An attribute with axes of the mesh, or none; ``apart``: every dimension has axes of its own."""
    if draw(st.booleans()):
        return ""
    axes = [f'"{axis}"' for axis in ("abcd" if apart else draw(st.permutations("abcd")))]
    dims = []
    for of_dim in (axes[:2], axes[2:]):
        held = draw(st.lists(st.sampled_from(of_dim), max_size=2, unique=True))
        dims.append(f"{{{', '.join([*held, *draw(st.sampled_from((['?'], [])))])}}}")
    return f" {{sdy.sharding = #sdy.sharding<@mesh, [{', '.join(dims)}]>}}"


@st.composite
def programs(draw: st.DrawFn, op: tuple[str, int, str, str]) -> str:
    """The op between others, some of which use its operands or its result too.

    Where an op has several operands, they do not contradict each other: what wins then depends on the
    order of the ops that XLA makes of it.
    """
    name, count, element, given_back = op
    sharding = shardings(apart=count > 1)
    x, y = f"tensor<8x16x{element}>", f"tensor<8x16x{given_back}>"
    kept = "stablehlo.not" if given_back == "i1" else "stablehlo.negate"
    operands = [draw(st.sampled_from(("%x", "%y", "%n"))) for _ in range(count)]
    results = draw(st.lists(st.sampled_from(("%r", "%s", "%t")), min_size=1, max_size=2, unique=True))
    types = {"%r": y, "%s": y, "%t": x}
    returned = ", ".join(f"{types[r]}{draw(sharding)}" for r in results)
    return f"""sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2, "d"=3]>
func.func @main(%x: {x}{draw(sharding)}, %y: {x}{draw(sharding)}) -> ({returned}) {{
  %n = stablehlo.negate %x : {x}
  %r = "{name}"({", ".join(operands)}) : ({", ".join([x] * count)}) -> {y}
  %s = {kept} %r : {y}
  %t = stablehlo.add %x, %n : {x}
  return {", ".join(results)} : {", ".join(types[r] for r in results)}
}}
"""


def lowered(text: str) -> str:
    """The module with StableHLO in place of CHLO."""
    with oracle.context():
        module = ir.Module.parse(text)
        manager = passmanager.PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))")
        manager.run(module.operation)
        return str(module)


def boundary(text: str) -> list[str]:
    """The shardings of the arguments and results of the function."""
    header = next(line for line in shardlog.run(text).text().splitlines() if "@main" in line)
    return re.findall(r"tensor<[^{},]*>(?: \{.*?>\})?", header)


@pytest.mark.parametrize("op", OPS, ids=lambda op: f"{op[0]}-{op[2]}")
def test_as_lowered(op: tuple[str, int, str, str]) -> None:
    @drawing(2)
    @given(programs(op))
    def equal(text: str) -> None:
        note(text)
        assert boundary(text) == boundary(lowered(text))

    equal()


COMPILED = {
    "top_k": lambda x: jax.lax.top_k(x, 4),
    "top_k of rows": lambda x: jax.lax.top_k(x, 4, axis=0),
    "square": jax.lax.square,
    "power": lambda x: x**2,
    "erf": jax.lax.erf,
    "erfc": jax.lax.erfc,
    "erf_inv": jax.lax.erf_inv,
    "lgamma": jax.lax.lgamma,
    "digamma": jax.lax.digamma,
    "acos": jax.lax.acos,
    "sinh": jax.lax.sinh,
    "nextafter": lambda x: jax.lax.nextafter(x, x),
    "zeta": lambda x: jax.lax.zeta(x, x + 1),
    "bessel_i1e": jax.lax.bessel_i1e,
}


SPECS = [P("a", "b"), P(("a", "b")), P(None, ("b", "a"))]


@pytest.mark.parametrize(
    ("name", "spec"),
    by_day([(name, SPECS[n % 3]) for n, name in enumerate(COMPILED)], product(COMPILED, SPECS)),
    ids=str,
)
def test_as_compiled(name: str, spec: Any) -> None:
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))
    make: Any = jax.ShapeDtypeStruct
    x = make((16, 64), jnp.float32, sharding=NamedSharding(mesh, spec))
    lowered = jax.jit(COMPILED[name]).lower(x)
    ours = jax.tree.leaves(shardlog.run(lowered).result_shardings)
    theirs = jax.tree.leaves(lowered.compile().output_shardings)
    assert all(o.is_equivalent_to(t, 2) for o, t in zip(ours, theirs, strict=True)), (ours, theirs)


def test_shardy_alone_passes_nothing() -> None:
    text = """sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %0 = chlo.square %x : tensor<8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
    alone = shardlog.run(text, strict_shardy=True)
    assert [op.reason for op in alone.unknown_ops] == ["the rule is XLA's, and Shardy alone has none"]
    assert differences(alone.text(), oracle.propagate(text)) == []
    assert shardlog.run(text).unknown_ops == ()
    assert differences(shardlog.run(text).text(), alone.text()) != []
