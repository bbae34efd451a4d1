"""Unreduced values at the boundary and inside: each device holds a part of a sum, and they are reduced where
they are needed whole, by the right reduction."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import shardlog
from hypothesis import assume, given, note
from shardlog.errors import ShardlogError
from shardlog.executing.execution import alone_on
from shardlog.executing.partial import combined
from shardlog.partition.forms import FORMS, Form
from shardlog.program.shardy import installed

from ..support.drawing import drawing
from ..support.generators.random_unreduced import unreduced_modules

KINDS = [
    pytest.param(kind, marks=pytest.mark.skipif(installed() == "0.10", reason="jaxlib 0.10 has sums alone"))
    for kind in ("max", "min")
]
COMBINE: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum}
T = "tensor<8x8xf32>"
X = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)


def spec(dims: str = "[{}, {}]", unreduced: str = "", kind: str = "sum") -> str:
    also = f", unreduced={'' if kind == 'sum' else kind}{{{unreduced}}}" if unreduced else ""
    return f"#sdy.sharding<@mesh, {dims}{also}>"


def module(takes: str, *ops: str, gives: str) -> str:
    return "\n".join(
        [
            'sdy.mesh @mesh = <["x"=2, "y"=4]>',
            f"func.func @main(%a: {T} {{sdy.sharding = {takes}}}) -> ({T} {{sdy.sharding = {gives}}}) {{",
            *ops,
            f"return %0 : {T}",
            "}",
        ]
    )


def reshard(operand: str, sharding: str, name: str = "%0") -> str:
    return f"{name} = sdy.sharding_constraint {operand} {sharding.removeprefix('#sdy.sharding')} : {T}"


def shares(executable: Any, kind: str) -> tuple[Any, Any]:
    """An array of which devices along "x" hold random parts, and the whole."""
    (sharding,) = executable._arguments
    parts = np.random.default_rng(1).standard_normal((2, 8, 8)).astype(np.float32)
    mesh = sharding.mesh
    held = [jax.device_put(parts[place], d) for place, row in enumerate(mesh.devices) for d in row.flat]
    array = jax.make_array_from_single_device_arrays((8, 8), sharding, held)
    return array, COMBINE[kind].reduce(parts)


@drawing(15)
@given(unreduced_modules(kinds=installed() != "0.10"))
def test_random_modules_are_right_whichever_parts_devices_hold(text: str) -> None:
    assume("unreduced" in text and "manual_computation" not in text)
    assume("stablehlo.all_reduce" not in text)  # one device has nobody to reduce with
    try:
        result = shardlog.run(text)
    except ShardlogError:
        assume(False)  # Shardy refuses it too
    note(text)
    executable = result.partition("replica").compile()
    arrays = [_parts(sharding, number) for number, sharding in enumerate(executable._arguments)]
    expected = alone_on(result.result, jax.devices()[:1])([np.asarray(combined(array)) for array in arrays])
    for got, wanted in zip(executable(*arrays), expected, strict=True):
        np.testing.assert_allclose(combined(got), wanted, rtol=2e-3, atol=1e-3)


def _parts(sharding: Any, number: int) -> Any:
    """An array of 8x8 elements whose parts are random, and differ along unreduced axes alone."""
    mesh, unreduced = sharding.mesh, sharding.spec.unreduced
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*sharding.spec.partitions))  # type: ignore[no-untyped-call]
    along = {
        device: [int(i) for name, i in zip(mesh.axis_names, place, strict=True) if name in unreduced]
        for place, device in np.ndenumerate(mesh.devices)
    }
    held = []
    for device, index in whole.devices_indices_map((8, 8)).items():
        part = np.random.default_rng([number, *along[device]]).standard_normal((8, 8))[index]
        held.append(jax.device_put(part.astype(np.float32) / 2, device))
    return jax.make_array_from_single_device_arrays((8, 8), sharding, held)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["sum", *KINDS])
def test_an_argument_is_what_devices_hold_together(form: Form, kind: str) -> None:
    text = module(
        spec(unreduced='"x"', kind=kind), reshard("%a", spec('[{"y"}, {}]')), gives=spec('[{"y"}, {}]')
    )
    program = shardlog.run(text).partition(form)
    executable = program.compile()
    array, whole = shares(executable, kind)
    np.testing.assert_allclose(executable(array)[0], whole, rtol=1e-6)
    np.testing.assert_allclose(executable(X)[0], X, rtol=1e-6)
    (sent,) = program.collectives
    assert sent.kind == "all-reduce"
    assert {"sum": "add", "max": "maximum", "min": "minimum"}[kind] in program.text()


@pytest.mark.parametrize("form", FORMS)
def test_partial_results_are_returned_where_they_are_wanted(form: Form) -> None:
    said = f"{{sdy.sharding = #sdy.sharding_per_value<[{spec(unreduced=chr(34) + 'x' + chr(34))[13:]}]>}}"
    dot = f"%0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1] {said} : ({T}, {T}) -> {T}"
    text = module(spec('[{}, {"x"}]'), dot, gives=spec(unreduced='"x"'))
    program = shardlog.run(text).partition(form)
    assert program.collectives == ()
    (got,) = program.compile()(X)
    assert got.sharding.spec.unreduced == {"x"}
    first, *_, last = got.addressable_shards
    assert not np.allclose(first.data, last.data)
    np.testing.assert_allclose(combined(got), X @ X.T, rtol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_it_stays_unreduced_through_the_program(form: Form) -> None:
    said = f"{{sdy.sharding = #sdy.sharding_per_value<[{spec(unreduced=chr(34) + 'x' + chr(34))[13:]}]>}}"
    text = module(
        spec(unreduced='"x"'), f"%0 = stablehlo.add %a, %a {said} : {T}", gives=spec(unreduced='"x"')
    )
    program = shardlog.run(text).partition(form)
    assert program.collectives == ()
    executable = program.compile()
    array, whole = shares(executable, "sum")
    np.testing.assert_allclose(combined(executable(array)[0]), 2 * whole, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["sum", *KINDS])
@pytest.mark.parametrize(
    ("op", "gives"),
    [
        ('sdy.all_reduce KIND{"x"} %a out_sharding=<@mesh, [{}, {}]>', spec()),
        ('sdy.reduce_scatter KIND[{"x"}, {}] %a out_sharding=<@mesh, [{"x"}, {}]>', spec('[{"x"}, {}]')),
    ],
    ids=["all_reduce", "reduce_scatter"],
)
def test_collectives_in_a_module_compute_their_reduction(form: Form, kind: str, op: str, gives: str) -> None:
    named = op.replace("KIND", "" if kind == "sum" else f"{kind} ")
    text = module(spec(unreduced='"x"', kind=kind), f"%0 = {named} : {T}", gives=gives)
    program = shardlog.run(text).partition(form)
    executable = program.compile()
    array, whole = shares(executable, kind)
    np.testing.assert_allclose(executable(array)[0], whole, rtol=1e-6)
    (sent,) = program.collectives
    assert sent.kind == ("all-reduce" if "all_reduce" in op else "reduce-scatter")


@pytest.mark.parametrize("form", FORMS)
def test_a_manual_computation_sees_the_parts_of_a_sum(form: Form) -> None:
    body = f"""%0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{}}, {{}}], unreduced={{"x"}}>]
        out_shardings=[<@mesh, [{{}}, {{}}], unreduced={{"x"}}>] manual_axes={{"x"}} (%b: {T}) {{
      %c = stablehlo.multiply %b, %b : {T}
      sdy.return %c : {T}
    }} : ({T}) -> {T}"""
    text = module(spec(unreduced='"x"'), body, gives=spec(unreduced='"x"'))
    executable = shardlog.run(text).partition(form).compile()
    array, _ = shares(executable, "sum")
    parts = [np.asarray(shard.data) for shard in array.addressable_shards]
    got = [np.asarray(shard.data) for shard in executable(array)[0].addressable_shards]
    np.testing.assert_allclose(got, np.square(parts), rtol=1e-6)
