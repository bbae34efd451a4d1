"""Collectives over equal groups become one op, and the results stay the same."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib.mlir import ir
from shardlog.explanations.partitioned import Partitioned
from shardlog.partition.device_program import DeviceProgram
from shardlog.partition.finishing.collectives import KINDS
from shardlog.partition.forms import Form
from shardlog.program.mlir.modules import ops_in

from ..support.programs import PROGRAMS, array, lowered

# The sums of %0 and %2 do not need each other, though one is used before the other can be made.
MODULE = """\
sdy.mesh @mesh = <["x"=4]>
#rows = #sdy.sharding<@mesh, [{"x"}, {}]>
#columns = #sdy.sharding<@mesh, [{}, {"x"}]>
#whole = #sdy.sharding<@mesh, [{}, {}]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #columns}, %b: tensor<16x8xf32> {sdy.sharding = #rows},
                %c: tensor<16x8xf32> {sdy.sharding = #rows})
    -> (tensor<8x8xf32> {sdy.sharding = #whole}, tensor<8x8xf32> {sdy.sharding = #whole}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>
  %2 = stablehlo.dot_general %a, %c, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}
"""  # noqa: E501


def written(program: DeviceProgram, platform: str = "cpu") -> list[str]:
    """The collectives of a program as it is written, and compiled for a platform."""
    module = program.module_for(platform)
    with module.context, ir.Location.unknown():
        names = [op.operation.name.partition(".")[2] for op in ops_in(module)]
    kinds = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute")
    return [name for name in names if name in kinds]


def test_sums_that_do_not_need_each_other_are_one_op() -> None:
    program = shardlog.run(MODULE).partition()
    assert [c.kind for c in program.collectives] == ["all-reduce", "all-reduce"]
    assert written(program) == ["all_reduce"]
    assert written(program, "tpu") == ["all_reduce", "all_reduce"]  # XLA combines them there
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((8, 16), (16, 8), (16, 8)))
    got = program.compile()(a, b, c)
    np.testing.assert_allclose(got[0], np.tanh(a @ b), rtol=1e-6)
    np.testing.assert_array_equal(got[1], a @ c)


CALLED = """\
sdy.mesh @mesh = <["x"=4]>
#rows = #sdy.sharding<@mesh, [{"x"}, {}]>
func.func private @length(%v: tensor<16x8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %v, %v : tensor<16x8xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16x8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = stablehlo.sqrt %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}
func.func @main(%a: tensor<16x8xf32> {sdy.sharding = #rows}, %b: tensor<16x8xf32> {sdy.sharding = #rows})
    -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = func.call @length(%a) : (tensor<16x8xf32>) -> tensor<8xf32>
  %1 = func.call @length(%b) : (tensor<16x8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
"""  # noqa: E501


@pytest.mark.parametrize("keep", [True, False])
def test_what_calls_of_a_small_function_send_is_one_op(keep: bool) -> None:
    program = shardlog.run(CALLED).partition(keep_shardings=keep)
    assert [(c.kind, c.executions) for c in program.collectives] == [("all-reduce", 1)] * 2
    assert written(program) == ["all_reduce"]
    assert "call" not in program.text()
    assert written(program, "tpu") == ["all_reduce"] * 2  # XLA combines them there
    a, b = np.random.default_rng(0).normal(size=(2, 16, 8)).astype(np.float32)
    for got, value in zip(program.compile()(a, b), (a, b), strict=True):
        np.testing.assert_allclose(got, np.sqrt((value**2).sum(0)), rtol=1e-6)


def gathered(given: str, apart: bool = False) -> str:
    """A program in which one function gathers %a, and one what it is given, each behind a barrier or not."""
    barrier = "%kept = stablehlo.optimization_barrier %v : tensor<16x8xf32>" if apart else ""
    value = "%kept" if apart else "%v"
    functions = "".join(
        f"""
func.func private @{name}(%v: tensor<16x8xf32>) -> tensor<16x8xf32> {{
  {barrier}
  %0 = sdy.sharding_constraint {value} <@mesh, [{{}}, {{}}]> : tensor<16x8xf32>
  %1 = stablehlo.{name} %0 : tensor<16x8xf32>
  return %1 : tensor<16x8xf32>
}}"""
        for name in ("sqrt", "sign")
    )
    return f"""
sdy.mesh @mesh = <["x"=4]>{functions}
func.func @main(%a: tensor<16x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}},
                %b: tensor<16x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
    -> (tensor<16x8xf32>, tensor<16x8xf32>) {{
  %0 = func.call @sqrt(%a) : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %1 = func.call @sign({given}) : (tensor<16x8xf32>) -> tensor<16x8xf32>
  return %0, %1 : tensor<16x8xf32>, tensor<16x8xf32>
}}
"""


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        (gathered("%b"), 64),
        (gathered("%a"), 32),
        (gathered("%a", apart=True), 64),  # it is gathered again on purpose
        (CALLED, 16),
        (CALLED.replace("@length(%b)", "@length(%a)"), 8),  # what is summed is computed twice
    ],
)
def test_what_calls_send_of_one_value_is_sent_once(text: str, sent: int) -> None:
    program = shardlog.run(text).partition(keep_shardings=True)
    module = program.module_for("cpu")
    with module.context:
        (only,) = (op for op in ops_in(module) if op.operation.name in KINDS)
        assert np.prod(ir.ShapedType(only.operands[0].type).shape) == sent
    a, b = np.random.default_rng(0).uniform(size=(2, 16, 8)).astype(np.float32)
    other = b if "(%b)" in text else a
    length = [np.sqrt((value**2).sum(0)) for value in (a, other)]
    expected = length if "@length" in text else [np.sqrt(a), np.sign(other)]
    for got, value in zip(program.compile()(a, b), expected, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-6)


@pytest.mark.parametrize(
    ("start", "goal", "kind"),
    [
        ("[{}, {}, {'x'}]", "[{}, {}, {}]", "all_gather"),
        ("[{}, {}, {'x'}]", "[{}, {'x'}, {}]", "all_to_all"),
        ("[{'y'}, {'x'}, {}]", "[{'x'}, {'y'}, {}]", "collective_permute"),
    ],
)
def test_what_is_handed_on_together_may_have_several_types(start: str, goal: str, kind: str) -> None:
    before, after = (f"#sdy.sharding<@mesh, {text}>".replace("'", '"') for text in (start, goal))
    types = "tensor<4x8x12xf32>", "tensor<8x4x4xi32>", "tensor<4x4x4xbf16>"
    arguments = [f"%{n}: {type_} {{sdy.sharding = {before}}}" for n, type_ in zip("abc", types, strict=True)]
    results = [f"{type_} {{sdy.sharding = {after}}}" for type_ in types]
    module = (
        'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
        f"func.func @main({', '.join(arguments)}) -> ({', '.join(results)}) {{\n"
        f"  return %a, %b, %c : {', '.join(types)}\n}}\n"
    )
    program = shardlog.run(module).partition()
    assert written(program) == [kind, kind]  # bf16 has fewer bits
    rng = np.random.default_rng(0)
    a = rng.random((4, 8, 12), np.float32)
    b = rng.integers(-9, 9, (8, 4, 4)).astype(np.int32)
    c = jax.numpy.asarray(rng.integers(-9, 9, (4, 4, 4)), jax.numpy.bfloat16)
    for mine, given in zip(program.compile()(a, b, c), (a, b, c), strict=True):
        np.testing.assert_array_equal(mine, given)


def test_what_needs_another_is_not_combined_with_it() -> None:
    product = (
        "stablehlo.dot_general %1, %1, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>)"
    )
    module = (
        'sdy.mesh @mesh = <["x"=4]>\n'
        'func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},'
        ' %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {\n'
        "  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]"
        " : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>\n"
        '  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"x"}]> : tensor<8x8xf32>\n'
        f"  %2 = {product} -> tensor<8x8xf32>\n"
        "  return %2 : tensor<8x8xf32>\n}\n"
    )
    program = shardlog.run(module).partition()
    assert len(written(program)) == len(program.collectives) > 1


@pytest.mark.parametrize("form", ["sdy-manual", "manual", "replica"])
@pytest.mark.parametrize("name", ["train step", "gradient of a scan"])
def test_results_are_the_same(name: str, form: Form) -> None:
    function, shapes = PROGRAMS[name]
    rng = np.random.default_rng(0)
    inputs = [rng.random(shape, np.float32) for shape in shapes]
    program = shardlog.run(lowered(name, 3)).partition(form, keep_shardings=False)
    got = program.compile()(*inputs)
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(jax.jit(function)(*inputs)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("rows", [1, 3, -2])
def test_a_rotation_is_one_step(rows: int) -> None:
    # Rows of all parts but one come from the part before, and those of one from the last.
    def rolled(x: Any) -> Any:
        return jnp.roll(x, rows, 0) * 2

    on = NamedSharding(Mesh(np.array(jax.devices()[:4]), ("x",)), PartitionSpec("x"))  # type: ignore[no-untyped-call]
    program = shardlog.run(
        jax.jit(rolled, in_shardings=on, out_shardings=on).lower(np.ones((64, 8), np.float32))
    )
    assert program.partition().text().count('"stablehlo.collective_permute"') == 1
    x = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
    np.testing.assert_array_equal(program.partition().compile()(x), rolled(x))


def test_rotations_to_both_sides_are_a_step_each() -> None:
    # What goes from the first part to the last would fit beside what goes back, and neither beside all else.
    steps = [(0, 3)], [(3, 0)], [(0, 1), (1, 2), (2, 3)], [(1, 0), (2, 1), (3, 2)]

    def body(*values: jax.Array) -> tuple[jax.Array, ...]:
        each = zip(values, steps, strict=True)
        return tuple(jax.lax.ppermute(v, "x", p) for v, p in each)  # type: ignore[no-untyped-call]

    spec = (PartitionSpec("x"),) * 4  # type: ignore[no-untyped-call]
    mesh = Mesh(np.array(jax.devices()[:4]), ("x",))
    f = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec))
    values = np.random.default_rng(0).normal(size=(4, 8, 2)).astype(np.float32)
    program = shardlog.run(f.lower(*values)).partition()
    assert written(program) == ["collective_permute"] * 2
    for got, expected in zip(program.compile()(*values), f(*values), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_permutations_of_other_devices_are_one_and_give_zeros_elsewhere() -> None:
    mesh = Mesh(np.array(jax.devices()[:4]), ("x",))
    pairs = [(0, 1), (1, 2)], [(3, 0)], [(2, 1)]  # of these the last sends to who receives in the first

    def body(*values: jax.Array) -> tuple[jax.Array, ...]:
        each = zip(values, pairs, strict=True)
        return tuple(jax.lax.ppermute(v, "x", p) for v, p in each)  # type: ignore[no-untyped-call]

    spec = (PartitionSpec("x"),) * 3  # type: ignore[no-untyped-call]
    f = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec))
    values = np.random.default_rng(0).normal(size=(3, 8, 2)).astype(np.float32)
    program = shardlog.run(f.lower(*values)).partition()
    assert written(program) == written(program, "tpu") == ["collective_permute"] * 2
    for got, expected in zip(program.compile()(*values), f(*values), strict=True):
        np.testing.assert_array_equal(got, expected)


COLUMNS = """\
sdy.mesh @mesh = <["x"=4]>
#columns = #sdy.sharding<@mesh, [{}, {"x"}]>
func.func @main(%a: tensor<8x512xf32> {sdy.sharding = #columns},
                %b: tensor<512x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %c: tensor<8x16xf32> {sdy.sharding = #columns})
    -> (tensor<8x16xf32> {sdy.sharding = #columns}, tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x512xf32>, tensor<512x16xf32>) -> tensor<8x16xf32>
  %1 = stablehlo.negate %c : tensor<8x16xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
}
"""  # noqa: E501


def test_columns_are_sent_as_rows_by_cpus() -> None:
    program = shardlog.run(COLUMNS).partition(keep_shardings=True)
    assert sorted(c.kind for c in program.collectives) == ["all-gather", "reduce-scatter"]
    for platform, first in (("cpu", True), ("cuda", False)):
        module = program.module_for(platform)
        with module.context:
            ops = {op.operation.name.partition(".")[2]: op.operation for op in ops_in(module)}
            along = ("all_gather", "all_gather_dim"), ("reduce_scatter", "scatter_dimension")
            dims = [ir.IntegerAttr(ops[kind].attributes[name]).value for kind, name in along]
        assert dims == ([0, 0] if first else [1, 1])
    rng, shapes = np.random.default_rng(0), ((8, 512), (512, 16), (8, 16))
    a, b, c = (rng.integers(-9, 9, shape).astype(np.float32) for shape in shapes)
    got = program.compile()(a, b, c)
    np.testing.assert_array_equal(got[0], a @ b)
    np.testing.assert_array_equal(got[1], -c)


VECTORS = """\
sdy.mesh @mesh = <["x"=4]>
#columns = #sdy.sharding<@mesh, [{}, {"x"}]>
func.func @main(%a: tensor<8x512xTYPE> {sdy.sharding = #columns},
                %b: tensor<512xTYPE> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                %c: tensor<SIZExTYPE> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xTYPE> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
        tensor<SIZExTYPE> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x512xTYPE>, tensor<512xTYPE>) -> tensor<8xTYPE>
  %1 = stablehlo.negate %c : tensor<SIZExTYPE>
  return %0, %1 : tensor<8xTYPE>, tensor<SIZExTYPE>
}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("type_", "size", "row", "sums"),
    [
        ("f32", 40, True, "all_to_all"),
        ("bf16", 40, True, "all_to_all"),
        ("f32", 512, False, "all_to_all"),
        ("complex<f32>", 40, True, "all_to_all"),
        ("f64", 40, True, "all_to_all"),
    ],
)
def test_what_is_sent_suits_tiles_of_tpus(
    type_: str, size: int, row: bool, sums: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dtype: Any = {"f32": np.float32, "f64": np.float64, "bf16": jnp.bfloat16}.get(type_, np.complex64)
    text = VECTORS.replace("TYPE", type_).replace("SIZE", str(size))
    program = shardlog.run(text).partition(keep_shardings=True)
    assert sorted(c.kind for c in program.collectives) == ["all-gather", "reduce-scatter"]
    assert sorted(written(program)) == ["all_gather", "reduce_scatter"]
    assert sorted(written(program, "tpu")) == sorted(["all_gather", sums])
    as_written = DeviceProgram.module_for
    module = program.module_for("tpu")
    with module.context:
        (gather,) = (op.operation for op in ops_in(module) if op.operation.name == "stablehlo.all_gather")
        assert list(ir.RankedTensorType(gather.results[0].type).shape) == ([4, size // 4] if row else [size])
    # Elsewhere it gives the same.
    monkeypatch.setattr(DeviceProgram, "module_for", lambda self, platform: as_written(self, "tpu"))
    rng, shapes = np.random.default_rng(0), ((8, 512), (512,), (size,))
    with jax.enable_x64(type_ == "f64"):
        most = 2 if type_ == "bf16" else 10  # what is added up has no more digits
        a, b, c = (rng.integers(1 - most, most, shape).astype(dtype) for shape in shapes)
        got = program.compile()(a, b, c)
        np.testing.assert_array_equal(got[0], a @ b)
        np.testing.assert_array_equal(got[1], -c)


@pytest.mark.tpu
@pytest.mark.parametrize("type_", ["f32", "complex<f32>", "f64"])
def test_tpus_gather_vectors_and_scatter_sums_of_all_types(type_: str) -> None:
    text = VECTORS.replace("TYPE", type_).replace("SIZE", "40")
    program = shardlog.run(text).partition(keep_shardings=True)
    kept = {each.kind: each for each in program.compile_ahead("tpu:v5e:2x4").collectives}
    assert kept["all-gather"].compiled_bytes == kept["all-gather"].bytes


def test_gathers_of_vectors_are_one_op_for_tpus() -> None:
    whole, parts = (f"{{sdy.sharding = #sdy.sharding<@mesh, [{{{axes}}}]>}}" for axes in ("", '"x"'))
    text = f"""\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<40xf32> {parts}, %b: tensor<64xi32> {parts})
    -> (tensor<40xf32> {whole}, tensor<64xi32> {whole}) {{
  return %a, %b : tensor<40xf32>, tensor<64xi32>
}}
"""
    program = shardlog.run(text).partition()
    assert [c.kind for c in program.collectives] == ["all-gather", "all-gather"]
    assert written(program, "tpu") == ["all_gather"]


def updated(scale: int) -> Partitioned:
    """Steps of gradients: each device has a part of the batch, and of the weights, whose sums it scatters; of
    the weights without a part the steps are gathered."""
    whole, parts = ("{}, {}", '{"x"}, {}')
    types, args, body, names = [], [], [], []
    for n, (rows, columns) in enumerate([(32, 64), (64, 64), (32, 128)]):
        given = f"tensor<256x{scale * rows}xf32>", f"tensor<256x{columns}xf32>"
        gives = f"tensor<{scale * rows}x{columns}xf32>"
        for name, type_ in zip("ab", given, strict=True):
            args.append(f"%{name}{n}: {type_} {{sdy.sharding = #sdy.sharding<@mesh, [{parts}]>}}")
        args.append(f"%c{n}: {gives} {{sdy.sharding = #sdy.sharding<@mesh, [{parts}]>}}")
        dot = f"stablehlo.dot_general %a{n}, %b{n}, contracting_dims = [0] x [0]"
        body.append(f"%{n} = {dot} : ({', '.join(given)}) -> {gives}")
        body.append(f"%s{n} = stablehlo.add %{n}, %c{n} : {gives}")
        types.append(f"{gives} {{sdy.sharding = #sdy.sharding<@mesh, [{whole}]>}}")
        names.append((f"%s{n}", gives))
    given = ", ".join(name for name, _ in names), ", ".join(type_ for _, type_ in names)
    text = f"""\
sdy.mesh @mesh = <["x"=4]>
func.func @main({", ".join(args)}) -> ({", ".join(types)}) {{
  {chr(10).join(body)}
  return {given[0]} : {given[1]}
}}
"""
    return shardlog.run(text).partition()


@pytest.mark.parametrize(
    ("scale", "kinds"),
    [
        (1, ["all_gather"] * 2 + ["reduce_scatter"] * 2),  # those with as many columns are one
        (16, ["all_gather"] * 3 + ["reduce_scatter"] * 3),  # more bytes than it is worth
    ],
)
def test_matrices_with_as_many_columns_are_one_op_for_tpus(
    scale: int, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, as_written = updated(scale), DeviceProgram.module_for
    assert sorted(c.kind for c in program.collectives) == ["all-gather"] * 3 + ["reduce-scatter"] * 3
    assert sorted(written(program, "tpu")) == kinds
    # Elsewhere it gives the same.
    monkeypatch.setattr(DeviceProgram, "module_for", lambda self, platform: as_written(self, "tpu"))
    rng, args, expected = np.random.default_rng(0), list[np.ndarray](), list[np.ndarray]()
    for rows, columns in [(32, 64), (64, 64), (32, 128)]:
        shapes = (256, scale * rows), (256, columns), (scale * rows, columns)
        a, b, c = (rng.integers(-9, 9, shape).astype(np.float32) for shape in shapes)
        args += [a, b, c]
        expected.append(a.T @ b + c)
    for found, each in zip(program.compile()(*args), expected, strict=True):
        np.testing.assert_array_equal(found, each)


def test_what_products_take_is_gathered_alone_for_tpus() -> None:
    """XLA sends it rounded, as it multiplies it."""
    text = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<512x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %w: tensor<512x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %v: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<512x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
        tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x64xf32>) -> tensor<512x64xf32>
  return %0, %v : tensor<512x64xf32>, tensor<64x64xf32>
}
"""  # noqa: E501
    program = shardlog.run(text).partition()
    assert (written(program), written(program, "tpu")) == (["all_gather"], ["all_gather"] * 2)


MATRICES = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<ROWSx512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<512xCOLUMNSxf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<ROWSxCOLUMNSxf32> {sdy.sharding = #sdy.sharding<@mesh, [WHERE]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<ROWSx512xf32>, tensor<512xCOLUMNSxf32>) -> tensor<ROWSxCOLUMNSxf32>
  return %0 : tensor<ROWSxCOLUMNSxf32>
}
"""  # noqa: E501


def scattered(rows: int, columns: int, dim: int) -> Partitioned:
    """A product that is added up in parts of its rows or of its columns."""
    text = MATRICES.replace("ROWS", str(rows)).replace("COLUMNS", str(columns))
    where = ('{"x"}, {}', '{}, {"x"}')[dim]
    program = shardlog.run(text.replace("WHERE", where)).partition(keep_shardings=True)
    assert [c.kind for c in program.collectives] == ["reduce-scatter"]
    return program


@pytest.mark.parametrize(
    ("rows", "columns", "dim", "kind", "shape"),
    [
        (80, 128, 0, "stablehlo.reduce_scatter", [4, 20, 128]),
        (64, 160, 1, "stablehlo.reduce_scatter", [4, 64, 40]),
        (64, 128, 0, "stablehlo.reduce_scatter", [64, 128]),  # whole tiles
        (32, 128, 0, "stablehlo.all_to_all", [32, 128]),  # no more than one
        (8, 160, 1, "stablehlo.all_to_all", [8, 160]),
    ],
)
def test_sums_that_end_inside_of_tiles_are_scattered_as_matrices(
    rows: int, columns: int, dim: int, kind: str, shape: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, as_written = scattered(rows, columns, dim), DeviceProgram.module_for
    module = program.module_for("tpu")
    with module.context:
        (op,) = (op.operation for op in ops_in(module) if op.operation.name == kind)
        assert list(ir.RankedTensorType(op.operands[0].type).shape) == shape
    # Elsewhere it gives the same.
    monkeypatch.setattr(DeviceProgram, "module_for", lambda self, platform: as_written(self, "tpu"))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((rows, 512), (512, columns)))
    np.testing.assert_array_equal(program.compile()(a, b)[0], a @ b)


@pytest.mark.tpu
@pytest.mark.parametrize(("rows", "columns", "dim"), [(80, 256, 0), (40, 256, 0), (64, 128, 0)])
def test_tpus_send_what_is_scattered_once(rows: int, columns: int, dim: int) -> None:
    (kept,) = scattered(rows, columns, dim).compile_ahead("tpu:v5e:2x4").collectives
    assert (kept.kind, kept.compiled_bytes) == ("reduce-scatter", kept.bytes)


@pytest.mark.tpu
@pytest.mark.parametrize(("rows", "columns", "dim"), [(32, 128, 0), (8, 40, 1)])
def test_tpus_exchange_what_is_no_more_than_a_tile(rows: int, columns: int, dim: int) -> None:
    ours, theirs = scattered(rows, columns, dim).compile_ahead("tpu:v5e:2x4").collectives
    assert (ours.kind, ours.compiled_bytes) == ("reduce-scatter", 0)
    assert (theirs.kind, theirs.compiled_bytes) == ("all-to-all", ours.bytes)


def test_what_two_functions_compute_is_sent_and_listed_once() -> None:
    """The mean, which the function of the variance computes as well."""

    def normalized(x: jax.Array) -> jax.Array:
        return (x - x.mean(0)) * jax.lax.rsqrt(x.var(0) + 1e-4)

    rows = array((64, 32), "model")
    for keep in (True, False):
        result = shardlog.run(jax.jit(normalized, out_shardings=rows.sharding).lower(rows))
        program = result.partition(keep_shardings=keep)
        assert [(c.kind, c.bytes) for c in program.collectives] == [("all-reduce", 32 * 4 * 2 * 3 // 4)] * 2
        assert program.cost().sent == sum(c.bytes for c in program.collectives)
