"""GSPMD's notation in whole modules: they say the same in both notations."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from hypothesis import given, reject
from jax._src.config import use_shardy_partitioner
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
from jaxlib import xla_client
from jaxlib.mlir import ir
from shardlog.cli import main
from shardlog.importers.sources.source import read_source
from shardlog.importers.sources.text import parse_module
from shardlog.notations.gspmd.groups import list_devices
from shardlog.notations.gspmd.hlo_sharding import HloSharding, parse
from shardlog.notations.gspmd.read import read_gspmd
from shardlog.notations.gspmd.tiles import flat_devices
from shardlog.notations.gspmd.write import to_gspmd
from shardlog.program.mlir.modules import ops_in, symbols
from shardlog.program.shardings import declared
from shardlog.program.shardy import installed

from ..support.drawing import drawing
from ..support.generators.random_modules import modules
from ..support.traits import TRAITS

XLA: Any = xla_client.HloSharding
P: Any = PartitionSpec
lax: Any = jax.lax
Tensor: Any = jax.ShapeDtypeStruct
MESH = AbstractMesh((2, 4), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
NESTED = AbstractMesh((2, 2, 2), ("a", "b", "c"), axis_types=(jax.sharding.AxisType.Auto,) * 3)


def over(mesh: Any, *spec: Any) -> NamedSharding:
    return NamedSharding(mesh, P(*spec))


def constrain(x: Any, *spec: Any) -> Any:
    return lax.with_sharding_constraint(x, over(MESH, *spec))


X = Tensor((8, 16), jnp.float32, sharding=over(MESH, "data", None))
W = Tensor((16, 16), jnp.float32, sharding=over(MESH, None, "model"))
FREE = Tensor((8, 16), jnp.float32)
Z = Tensor((8, 16), jnp.float32, sharding=over(NESTED, "a", None))


def loop(x: Any, w: Any) -> Any:
    def body(carry: Any, _: Any) -> Any:
        carry = constrain(jnp.tanh(carry @ w), "data", "model")
        return carry, carry.sum()

    return lax.scan(body, x, None, length=3)


def orders(x: Any, w: Any) -> Any:
    return constrain(x @ w, None, ("model", "data"))


def unconstrained(x: Any, w: Any) -> Any:
    return constrain(x @ w, P.UNCONSTRAINED, "model")


def manual(x: Any, w: Any) -> Any:
    product: Any = jax.shard_map(
        lambda a, b: lax.psum(a @ b, "model"),
        mesh=MESH,
        in_specs=(P("data", "model"), P("model")),
        out_specs=P("data"),
    )
    return product(x, w) + product(x * 2, w)


def partly_manual(x: Any, w: Any) -> Any:
    def body(a: Any) -> Any:
        return jax.jit(jnp.sin)(a) + lax.axis_index("model")

    return jax.shard_map(
        body, mesh=MESH, in_specs=P(None, "model"), out_specs=P(None, "model"), axis_names={"model"}
    )(jax.jit(jnp.sin)(x @ w))


def nested(z: Any) -> Any:
    def outer(a: Any) -> Any:
        a = a @ a.T
        return jax.shard_map(jnp.sin, in_specs=P("b"), out_specs=P("b"), axis_names={"b"})(a)

    return jax.shard_map(outer, mesh=NESTED, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})(z)


def alike(x: Any, y: Any) -> Any:
    module: Any = import_module("jax.experimental.shard_alike")
    return module.shard_alike(y, jnp.sin(x))


def callback(x: Any, w: Any) -> Any:
    jax.debug.print("{}", x.sum())
    return x @ w


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (loop, (X, W)),
    (orders, (X, W)),
    (unconstrained, (FREE, W)),
    (manual, (X, W)),
    (partly_manual, (X, W)),
    (nested, (Z,)),
    *([(alike, (X, FREE))] if find_spec("jax.experimental.shard_alike") else []),  # gone since jax 0.11
    (callback, (X, W)),
]


def lower(function: Callable[..., Any], arguments: tuple[Any, ...], *, shardy: bool) -> str:
    with use_shardy_partitioner(shardy):
        return str(jax.jit(function).trace(*arguments).lower(lowering_platforms=("cpu",)).as_text())


def axes_of(arguments: tuple[Any, ...]) -> str:
    mesh = arguments[-1].sharding.mesh if arguments[-1].sharding else MESH
    return ",".join(f"{name}={size}" for name, size in mesh.shape.items())


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_jax_programs_are_the_same_in_both_notations(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    gspmd = lower(function, arguments, shardy=False)
    assert "mhlo.sharding" in gspmd
    assert "sdy." not in gspmd
    read = shardlog.run(gspmd, mesh=axes_of(arguments)).text()
    assert read == shardlog.run(plain(lower(function, arguments, shardy=True))).text()


def plain(text: str) -> str:
    """A module without the open constraints that JAX 0.12 puts behind manual computations, and its
    collectives with lists of devices, which newer ones say by the axes of a mesh."""
    source = read_source(text)
    module = parse_module(source)
    shardings = declared(symbols(module, "sdy.mesh"))
    with module.context, ir.Location.unknown():
        for op in [*ops_in(module)]:
            list_devices(op, shardings)
            made_by = op.operands[0].owner if op.operation.name == "sdy.sharding_constraint" else None
            if made_by is None or isinstance(made_by, ir.Block):
                continue
            behind = made_by.operation.name == "sdy.manual_computation"
            if behind and shardings.read(op.attributes["sharding"]).empty:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.operation.erase()
    return str(module)


NOTHING = re.compile(
    r" ?\{sdy\.sharding = #sdy\.sharding_per_value<\[<@mesh, \[(\{\}(, )?)*\]>\]>\}"
    r"|, sdy\.sharding = #sdy\.sharding<@mesh, \[(\{\}(, )?)*\]>"
)


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_round_trip(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """A module that is written and read again is the same; only ops in manual computations, all of which
    have to name their manual axes, come back with empty shardings."""
    result = shardlog.run(plain(lower(function, arguments, shardy=True)))
    gspmd = result.text("gspmd")
    assert "sdy.sharding" not in gspmd
    for text in re.findall(r'mhlo\.sharding = "([^"]*)"', gspmd):
        assert str(XLA.from_string(text)) == text
    again = shardlog.run(gspmd, mesh=axes_of(arguments)).text()
    assert NOTHING.sub("", again) == NOTHING.sub("", result.text())


def module(signature: str, *lines: str, top: str = "") -> str:
    body = "\n  ".join(lines)
    return f"{top}\nfunc.func @main({signature} {{\n  {body}\n}}\n"


def shown(text: str, **options: Any) -> str:
    return shardlog.run(text, **options).text()


def test_a_module_without_a_mesh_gets_one() -> None:
    text = shown(
        module(
            '%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[4,8]<=[8,4]T(1,0)}"}, %b: tensor<8x8xf32> '
            '{mhlo.sharding = "{devices=[1,2,16]<=[32] last_tile_dim_replicate}"}) -> tensor<8x8xf32>',
            "%0 = stablehlo.add %a, %b : tensor<8x8xf32>",
            "return %0 : tensor<8x8xf32>",
        )
    )
    assert 'sdy.mesh @mesh = <["axis_0"=2, "axis_1"=4, "axis_2"=4]>' in text
    assert (
        '%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"axis_2"}, {"axis_0", "axis_1"}]>}'
        in text
    )
    assert '%arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"axis_0"}]>}' in text


def test_axes_of_the_users_mesh_are_cut_where_needed() -> None:
    argument = '%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) -> tensor<8x8xf32>'
    text = shown(module(argument, "return %a : tensor<8x8xf32>"), mesh="x=4,y=2", strategy="basic")
    assert '[{"x":(1)2}, {"x":(2)2, "y"}]' in text


def test_tuples_one_sharding_for_all_and_single_devices() -> None:
    text = shown(
        module(
            '%a: tensor<8xf32> {mhlo.sharding = "{unknown}"}, %b: tensor<8xf32>) -> tensor<8xf32>',
            "%0:2 = stablehlo.optimization_barrier "
            '{mhlo.sharding = "{{devices=[2]<=[2]}, {maximal device=1}}"} '
            "%a, %b : tensor<8xf32>, tensor<8xf32>",
            '%1:2 = stablehlo.optimization_barrier {mhlo.sharding = "{replicated}"} '
            "%a, %b : tensor<8xf32>, tensor<8xf32>",
            "%2 = stablehlo.add %0#0, %1#1 : tensor<8xf32>",
            "return %2 : tensor<8xf32>",
        )
    )
    assert "sdy.mesh @maximal_mesh_1 = <[], device_ids=[1]>" in text
    assert '[<@mesh, [{"axis_0"}]>, <@maximal_mesh_1, []>]' in text
    assert "[<@mesh, [{}]>, <@mesh, [{}]>]" in text


def test_shard_as_is_a_sharding_group() -> None:
    text = shown(
        module(
            '%a: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2] shard_as 7}"}, %b: tensor<8xf32>)'
            " -> tensor<8xf32>",
            '%0 = stablehlo.tanh %b {mhlo.sharding = "{unknown shard_as 7}"} : tensor<8xf32>',
            "return %0 : tensor<8xf32>",
        )
    )
    assert 'tanh %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"axis_0"}]>]>}' in text


ARGUMENT = '%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) -> tensor<8x8xf32>'
RETURN = "return %a : tensor<8x8xf32>"
XY = 'sdy.mesh @mesh = <["x"=2, "y"=4]>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            module(ARGUMENT.replace("[2,4]", "[2,4"), RETURN),
            "2:1: argument 0 of @main: error: not a sharding: {devices=[2,4<=[8]}: expected ',', found '<='",
        ),
        (
            module(ARGUMENT.replace("[2,4]", "[8]"), RETURN),
            "{devices=[8]<=[8]} is for rank 1, the tensor has rank 2",
        ),
        (
            module(ARGUMENT, RETURN, top='sdy.mesh @mesh = <["x"=4]>'),
            "is on 8 devices, and the mesh x=4 has 4",
        ),
        (
            module(ARGUMENT, RETURN, top='sdy.mesh @mesh = <["x"=8]>\n' + XY.replace("@mesh", "@n")),
            "has 2 meshes",
        ),
        (
            module(
                '%a: tensor<6xf32> {mhlo.sharding = "{devices=[2,3]<=[6] last_tile_dim_replicate}"}) -> ()',
                "return",
                top='sdy.mesh @mesh = <["x"=3, "y"=2]>',
            ),
            "the axes of the mesh x=3,y=2 cannot express",
        ),
        (
            module(
                '%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}", '
                'sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<8x8xf32>',
                RETURN,
                top=XY,
            ),
            "sdy.sharding and mhlo.sharding contradict each other",
        ),
        (
            module(ARGUMENT.replace("<=[8]", "<=[8] shard_like 1"), RETURN),
            "shard_like 1: sdy has no groups of shardings that are only compatible",
        ),
        (
            module(
                ARGUMENT,
                '%0 = stablehlo.custom_call @SPMDFullToShardShape(%a) {mhlo.sharding = "{manual}"} '
                ": (tensor<8x8xf32>) -> tensor<4x2xf32>",
                RETURN,
            ),
            "no @SPMDShardToFullShape ends the manual region that begins here",
        ),
        (
            module(
                ARGUMENT,
                '%0 = stablehlo.tanh %a {mhlo.sharding = "{{replicated}, {manual}}"} : tensor<8x8xf32>',
                RETURN,
            ),
            "a tuple of 2 shardings for 1 results",
        ),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(shardlog.ShardlogError, match=re.escape(message)):
        shardlog.run(text)


def test_both_notations_may_say_the_same() -> None:
    both = ARGUMENT.replace('}"', '}", sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>')
    assert "mhlo.sharding" not in shown(module(both, RETURN, top=XY))


def test_what_is_written_around_constraints() -> None:
    text = module(
        "%a: tensor<8x8xf32>) -> tensor<8x8xf32>",
        '%0 = sdy.sharding_constraint %a <@mesh, [{"x", ?}, {?}]> : tensor<8x8xf32>',
        "%1 = sdy.propagation_barrier %0 allowed_direction=NONE : tensor<8x8xf32>",
        "return %1 : tensor<8x8xf32>",
        top=XY,
    )
    written = shardlog.run(text, closed=False).text("gspmd")
    call = (
        '@Sharding(%arg0) {backend_config = "unspecified_dims=[0,1]", mhlo.sharding = "{devices=[2,1,4]<=[8]'
    )
    assert call in written
    assert "barrier" not in written
    assert '<@mesh, [{"x", ?}, {?}]>' in shown(written, mesh="x=2,y=4", closed=False)


def listed(written: str) -> str:
    """A module with all devices listed. Meshes in several orders are read as one mesh, in whose shardings
    devices are listed, as XLA does, even those that could be counted up."""

    def devices(tiles: re.Match[str]) -> str:
        sharding = parse(f"{{{tiles[0]}}}")
        assert isinstance(sharding, HloSharding)
        return str(replace(sharding, devices=flat_devices(sharding)))[1:-1]

    return re.sub(r"devices=\[[\d,]*\]<=\[[\d,]*\](T\([\d,]*\))?", devices, written)


@drawing(24)
@given(modules())
def test_random_modules_are_written_as_they_are_read(text: str) -> None:
    try:
        written = shardlog.run(text).text("gspmd")
    except shardlog.ShardlogError:
        reject()  # a conflict in a sharding group
    module = parse_module(read_source(written))
    try:
        with module.context, ir.Location.unknown():
            read_gspmd(module)
    except shardlog.ShardlogError as error:
        several = ("all shardings of a module", "no mesh has")  # the module had several meshes
        assert any(part in str(error) for part in several)
        reject()
    if re.search("{unreduced}|{manual}", written) and "devices=" not in written:
        reject()  # nothing says on how many devices: the mesh has no axes, as XLA's
    assert listed(str(to_gspmd(module, TRAITS))) == listed(written)


def test_what_gspmd_has_nothing_for() -> None:
    text = module(
        "%a: tensor<8xf32>) -> tensor<8xf32>",
        "%0 = sdy.data_flow_edge %a : tensor<8xf32>",
        "return %0 : tensor<8xf32>",
    )
    with pytest.raises(shardlog.ShardlogError, match="notation cannot express sdy"):
        to_gspmd(parse_module(read_source(text)), TRAITS)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(module(ARGUMENT, RETURN))
    assert main(["run", str(path), "--notation", "gspmd"]) == 0
    out = capsys.readouterr().out
    assert 'mhlo.sharding = "{devices=[2,4]<=[8]}"' in out
    assert "sdy" not in out
    path.write_text(module(ARGUMENT.replace("devices", "device"), RETURN))
    assert main(["run", str(path)]) == 2
    assert f"{path}:2:1: argument 0 of @main: error: not a sharding" in capsys.readouterr().err


def test_a_function_called_inside_and_outside_of_a_manual_computation() -> None:
    """Inside, its values have manual axes; so there are two functions."""
    text = (
        module(
            "%a: tensor<8xf32>) -> tensor<8xf32>",
            "%0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>",
            '%1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{}], replicated={"y"}>] '
            'out_shardings=[<@mesh, [{}], replicated={"y"}>] manual_axes={"y"} (%b: tensor<8xf32>) {',
            "  %2 = func.call @f(%b) : (tensor<8xf32>) -> tensor<8xf32>",
            "  sdy.return %2 : tensor<8xf32>",
            "} : (tensor<8xf32>) -> tensor<8xf32>",
            "return %1 : tensor<8xf32>",
            top=XY,
        )
        + "func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {\n"
        "  %0 = stablehlo.tanh %a : tensor<8xf32>\n  return %0 : tensor<8xf32>\n}\n"
    )
    written = str(to_gspmd(parse_module(read_source(text)), TRAITS))
    manual_inside = '{mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dims={manual, replicated}}"}'
    assert "call @f(%arg0) : (tensor<8xf32>)" in written
    assert f"call @f_0(%arg0) {manual_inside} : (tensor<8xf32>)" in written
    assert "private @f(%arg0: tensor<8xf32>) -> tensor<8xf32>" in written
    assert f"private @f_0(%arg0: tensor<8xf32> {manual_inside})" in written
    assert "sdy.manual_computation" in shown(written, mesh="x=2,y=4")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (orders, lambda x, w: x @ w),
        (manual, lambda x, w: 3 * x @ w),
        (partly_manual, lambda x, w: np.sin(np.sin(x @ w)) + np.arange(16) // 4),
    ],
)
def test_xla_computes_the_same(function: Callable[..., Any], expected: Callable[..., Any]) -> None:
    """XLA's GSPMD partitioner takes what we write, and the program computes what it did."""
    from jax._src import sharding_impls
    from jax._src.interpreters import mlir

    values = [
        np.random.default_rng(i).standard_normal(t.shape).astype("float32") for i, t in enumerate((X, W))
    ]
    text = shardlog.run(lower(function, (X, W), shardy=True)).text("gspmd")
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    options.num_replicas, options.num_partitions = build.num_replicas, build.num_partitions = 1, 8
    build.use_spmd_partitioning, build.use_shardy_partitioner = True, False
    build.device_assignment = xla_client.DeviceAssignment.create(np.arange(8).reshape(1, 8))
    devices = jax.devices()
    with mlir.make_ir_context():
        client: Any = devices[0].client
        program = client.compile_and_load(
            ir.Module.parse(text), xla_client.DeviceList(tuple(devices)), options
        )

    def placed(proto: Any) -> Any:
        return sharding_impls.GSPMDSharding(devices, XLA.from_proto(proto))

    operands = [
        jax.device_put(value, placed(proto))
        for value, proto in zip(values, program.get_parameter_shardings(), strict=True)
    ]
    parts = program.execute_sharded(operands).disassemble_into_single_device_arrays()[0]
    found = jax.make_array_from_single_device_arrays(
        (8, 16), placed(program.get_output_shardings()[0]), parts
    )
    np.testing.assert_allclose(np.asarray(found), expected(*values), atol=1e-4)


def protos() -> dict[str, Any]:
    """Protocol buffers by what they say."""
    kinds = xla_client.OpSharding.Type
    listed = XLA.iota_tile((2, 2, 2), (4, 2), (1, 0), [kinds.MANUAL])
    replicated = XLA.iota_tile((2, 2, 2), subgroup_types=[kinds.REPLICATED])
    both = XLA.iota_tile((2, 1, 2, 2), subgroup_types=[kinds.MANUAL, kinds.REPLICATED])
    found = [XLA.replicate(), XLA.manual(), XLA.unknown(), listed, replicated, both]
    return {str(sharding): sharding.to_proto() for sharding in found}


@pytest.mark.parametrize(("text", "proto"), protos().items(), ids=protos())
def test_protocol_buffers(text: str, proto: Any) -> None:
    plain = MODULE_OF_ONE.format(text)
    escaped = "".join(f"\\{byte:02X}" for byte in proto.SerializeToString())
    axes = "x=4,y=2" if "[4,2]" in text else "x=2,y=2,z=2"
    assert shown(MODULE_OF_ONE.format(escaped), mesh=axes) == shown(plain, mesh=axes)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (r"\08\01", "{maximal device=}: expected a number, found '}'"),
        (r"\08\03", "{devices=[]}: expected a number, found '}'"),
        (r"\08\03\1A\02\02\04", "{devices=[2,4]}: expected a number, found '}'"),
        ("hello", "hello: expected '{', found 'hello'"),
        (r"\FF", "\N{REPLACEMENT CHARACTER}: expected '{', found '\N{REPLACEMENT CHARACTER}'"),
        (r"\08\02\1A", "\b\x02\x1a: expected '{', found '\b'"),  # its end is missing
    ],
)
def test_damaged_protocol_buffers(data: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(shardlog.ShardlogError) as caught:
        shardlog.run(MODULE_OF_ONE.format(data))
    assert caught.value.message == f"not a sharding: {message}"
    assert capfd.readouterr() == ("", "")


def test_too_many_devices() -> None:
    text = "{devices=[999999999,8]<=[8,999999999]T(1,0)}"
    with pytest.raises(shardlog.ShardlogError) as caught:
        shardlog.run(MODULE_OF_ONE.format(text))
    expected = f"not a sharding: {text}: 7,999,999,992 devices, and at most 4,194,304 can be"
    assert caught.value.message == expected


MODULE_OF_ONE = """\
func.func @main(%arg0: tensor<8x8xf32> {{mhlo.sharding = "{}"}}) -> tensor<8x8xf32> {{
  return %arg0 : tensor<8x8xf32>
}}
"""


@pytest.mark.skipif(installed() == "0.10", reason="the text of jaxlib 0.10 has sums alone")
def test_tiles_have_no_reduction_but_sums() -> None:
    text = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced=max{"x"}>})
        -> tensor<8xf32> {
      %0 = sdy.sharding_constraint %a <@mesh, [{}]> : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    """
    with pytest.raises(shardlog.ShardlogError, match="has partial sums only, not a partial max"):
        shardlog.run(text).text("gspmd")
