"""The Python API: from a lowered JAX function to shardings, tables and a module that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jaxlib import _jax, xla_client

from .support.compare import differences
from .support.drawing import by_day
from .support.models import common, dense
from .support.oracle import propagate
from .support.programs import P

pytestmark = pytest.mark.versions

MESH = common.MESH


def layer(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """Two matrix products with a nonlinearity between them."""
    return jnp.tanh(x @ params["up"]) @ params["down"]


ARGUMENTS = (
    {"down": common.array((32, 16)), "up": common.array((16, 32), None, "model")},
    common.array((8, 16), "data", None),
)


@pytest.fixture(scope="module")
def result() -> shardlog.Session:
    return shardlog.run(common.lower(layer, *ARGUMENTS))


def test_shardings_of_arguments_and_results(result: shardlog.Session) -> None:
    params, x = result.argument_shardings
    assert params["up"] == common.sharding(None, "model")
    assert x == common.sharding("data", None)
    assert params["down"] == common.sharding("model", None)  # from the values between
    assert result.result_shardings == common.sharding("data", None)


def test_shardings_of_several_axes_and_of_none() -> None:
    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        return x + 1, y * 2

    lowered = common.lower(function, common.array((8, 4), ("data", "fsdp"), None), common.array((8, 4)))
    result = shardlog.run(lowered)
    assert result.result_shardings == (common.sharding(("data", "fsdp"), None), common.sharding())


def test_sub_axes_have_no_name_in_jax() -> None:
    text = """
    sdy.mesh @mesh = <["x"=4]>
    func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>}) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
    """
    with pytest.raises(shardlog.ShardlogError, match=r'sub-axis "x":\(1\)2 has no name in JAX'):
        _ = shardlog.run(text).argument_shardings


def test_relations_are_arrays_with_named_columns(result: shardlog.Session) -> None:
    sharded = result.relations["sharded"]
    assert sharded.dtype.names == ("v", "d", "k", "x")
    of_up = sharded[sharded["v"] == "%arg1"]
    assert of_up.tolist() == [("%arg1", 1, 0, "model")]
    assert result.relations["dim"]["size"].max() == 32
    assert result.relations["mesh_axis"].tolist() == [
        ("mesh", "data", 2),
        ("mesh", "fsdp", 2),
        ("mesh", "model", 2),
    ]


def test_every_form_of_a_program_gives_the_same(result: shardlog.Session, tmp_path: Path) -> None:
    lowered = common.lower(layer, *ARGUMENTS)
    text = lowered.as_text()
    path = tmp_path / "m.mlir"
    path.write_text(text)
    for source in (lowered.compiler_ir(), text, text.encode(), path, str(path)):
        assert shardlog.run(source).text() == result.text()


def test_the_source_is_not_changed() -> None:
    module = common.lower(layer, *ARGUMENTS).compiler_ir()
    before = str(module)
    shardlog.run(module)
    assert str(module) == before


def test_statistics_and_progress(result: shardlog.Session) -> None:
    assert [(s.priority, s.level, s.strategy) for s in result.stages] == [
        (0, level, "aggressive") for level in range(5)
    ]
    assert all(s.distinct <= s.turns for s in result.stages)
    assert sum(s.changes for s in result.stages) > 0
    seen: list[tuple[str, float]] = []
    shardlog.run(result.text(), progress=lambda what, done: seen.append((what, done)))
    assert [what for what, _ in seen if what != "propagating"] == ["reading", "importing", "writing"]
    assert [done for _, done in seen] == sorted(done for _, done in seen)


def test_unknown_strategy() -> None:
    with pytest.raises(shardlog.ShardlogError, match="did you mean basic"):
        shardlog.run("module {}", strategy="basics")


def test_something_that_is_no_program() -> None:
    with pytest.raises(shardlog.ShardlogError, match="cannot read a program from a int"):
        shardlog.run(3)
    with pytest.raises(shardlog.ShardlogError, match="cannot read a program from a"):
        shardlog.run(jax.make_jaxpr(jnp.tanh)(1.0))


def test_a_number_is_no_name_of_a_value() -> None:
    with pytest.raises(shardlog.ShardlogError, match="3 is not the name of a value") as error:
        shardlog.run("module { func.func @main(%x: tensor<4xf32>) { return } }").why(3)  # type: ignore[arg-type]
    assert "partition().why(0) explains a collective" in error.value.hint


# ---- Running what comes out -------------------------------------------------------------------------------


def on_eight_devices(
    result: shardlog.Session, module: str | bytes, inputs: list[Any], shapes: list[tuple[int, ...]]
) -> list[Any]:
    """Compiles an annotated module with XLA's Shardy partitioner, runs it on eight CPU devices and puts its
    results, which have these shapes, together."""
    devices = jax.devices("cpu")
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = 1, 8
    build = options.executable_build_options
    build.num_partitions, build.use_spmd_partitioning, build.use_shardy_partitioner = 8, True, True
    build.device_assignment = xla_client.DeviceAssignment.create(np.arange(8).reshape(1, 8))
    executable = devices[0].client.compile_and_load(module, _jax.DeviceList(tuple(devices)), options)
    mesh = Mesh(np.array(devices).reshape(2, 2, 2), MESH.axis_names)

    def placed(sharding: NamedSharding | None) -> NamedSharding:
        return NamedSharding(mesh, (sharding or common.sharding()).spec)

    given = [
        jax.device_put(x, placed(s))
        for x, s in zip(inputs, jax.tree.leaves(result.argument_shardings), strict=True)
    ]
    parts = executable.execute_sharded(given).disassemble_into_single_device_arrays()
    return [
        np.asarray(jax.make_array_from_single_device_arrays(shape, placed(sharding), shards))
        for shape, sharding, shards in zip(
            shapes, jax.tree.leaves(result.result_shardings), parts, strict=True
        )
    ]


@pytest.mark.parametrize("form", by_day(["bytecode"], ["text", "bytecode"]))
def test_the_annotated_train_step_runs_and_computes_what_jax_computes(form: str) -> None:
    array = common.array
    params = {"embedding": array((256, 64), "model", "fsdp"), "layers": [dense.LAYER]}
    tokens = array((8, 17), common.BATCH, None, dtype=jnp.int32)
    step, random = common.adam(dense.loss), np.random.default_rng(0)
    arguments = (params, params, params, array((), dtype=jnp.int32), tokens)
    inputs = [
        random.integers(0, 256, a.shape, np.int32)
        if a.dtype == jnp.int32
        else random.uniform(0.01, 0.1, a.shape).astype(a.dtype)
        for a in jax.tree.leaves(arguments)
    ]
    expected = jax.tree.leaves(jax.jit(step)(*jax.tree.unflatten(jax.tree.structure(arguments), inputs)))
    result = shardlog.run(common.lower(step, *arguments))
    module = getattr(result, form)()
    found = on_eight_devices(result, module, inputs, [x.shape for x in expected])
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)


def test_members_of_a_group_may_disagree_as_in_shardy() -> None:
    text = """
    sdy.mesh @mesh = <["a"=2, "b"=2]>
    func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},
                           %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>})
        -> tensor<8xf32> {
      %0 = stablehlo.add %arg0, %arg1 : tensor<8xf32>
      sdy.sharding_group %arg0 group_id=0 : tensor<8xf32>
      sdy.sharding_group %arg1 group_id=0 : tensor<8xf32>
      func.return %0 : tensor<8xf32>
    }
    """
    with pytest.warns(UserWarning, match="each keeps its own"):
        got = shardlog.run(text, separate_groups=True).text()
    assert differences(got, propagate(text)) == []


def test_the_api_is_listed() -> None:
    assert dir(shardlog) == sorted(shardlog.__all__)
    assert all(hasattr(shardlog, name) for name in dir(shardlog))


def test_explicit_axes_have_a_hint() -> None:
    explicit = AbstractMesh((2,), ("x",), axis_types=(AxisType.Explicit,))
    shaped: Any = jax.ShapeDtypeStruct
    spec: Any = P
    argument = shaped((4, 4), jnp.float32, sharding=NamedSharding(explicit, spec(None, "x")))
    with pytest.raises(Exception, match="ambiguous") as caught:
        shardlog.run(lambda a: a @ a.T, argument)
    assert any("axis_types=(AxisType.Auto,)" in note for note in caught.value.__notes__)
