"""Meshes and annotations as JAX's objects, and by JAX's paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardlog
from jax import sharding
from jax.sharding import AbstractMesh, AxisType, Mesh
from shardlog.cli import main
from shardlog.errors import ShardlogError
from shardlog.runs.running import run_again

P: Any = sharding.PartitionSpec  # which have no types
NamedSharding: Any = sharding.NamedSharding
MESH = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
SHAPES = {"w": jnp.ones((16, 32)), "v": jnp.ones((32, 16))}, jnp.ones((8, 16))


def layer(params: dict[str, jax.Array], x: jax.Array) -> dict[str, jax.Array]:
    """Two matrix products."""
    return {"y": jnp.tanh(x @ params["w"]) @ params["v"]}


def specs(result: shardlog.Session) -> tuple[Any, Any, Any]:
    """Those of w, v and x."""
    params, x = result.argument_shardings
    return params["w"].spec, params["v"].spec, x.spec


EXPECTED = (P(None, "model"), P("model", None), P("data", None))
FORMS: list[Any] = [
    {"params['w']": P(None, "model"), "x": P("data")},
    {"params": {"w": P(None, "model")}, "x": '[{"data"}, {}]'},
    {"%arg1": P(None, "model"), "result['y']": P("data")},
    ({"w": P(None, "model"), "v": None}, P("data", None)),
    ({"w": NamedSharding(MESH, P(None, "model")), "v": None}, NamedSharding(MESH, P("data"))),
    ["params['w']=[{}, {\"model\"}]", '%arg2=[{"data"}, {}]'],
]


@pytest.mark.parametrize("annotate", FORMS, ids=range(len(FORMS)))
def test_annotations(annotate: Any, tmp_path: Path) -> None:
    result = shardlog.run(layer, *SHAPES, mesh=MESH, annotate=annotate)
    assert specs(result) == EXPECTED
    assert all(isinstance(text, str) for text in result.result.options.annotate)
    result.save(tmp_path / "run")  # which keeps what it was asked for
    assert shardlog.open(tmp_path / "run").text() == result.text()


def test_a_prefix_of_the_tree_holds_for_all_below() -> None:
    result = shardlog.run(layer, *SHAPES, mesh=MESH, annotate=(P(), P("data")))
    assert specs(result) == (P(None, None), P(None, None), P("data", None))


def test_unconstrained_dimensions_are_open() -> None:
    given = {"params['w']": P(None, "model"), "params['v']": P(P.UNCONSTRAINED, None)}
    assert specs(shardlog.run(layer, *SHAPES, mesh=MESH, annotate=given))[1] == EXPECTED[1]
    given["params['v']"] = P(None, None)
    assert specs(shardlog.run(layer, *SHAPES, mesh=MESH, annotate=given))[1] == P(None, None)


@pytest.mark.parametrize("concrete", [True, False])
def test_meshes(concrete: bool) -> None:
    devices = jax.make_mesh((2, 4), ("data", "model"))
    mesh = devices if concrete else devices.abstract_mesh
    for given in (
        {"mesh": mesh, "annotate": {"x": P("data")}},
        {"annotate": {"x": NamedSharding(mesh, P("data"))}},
    ):
        (_, x), y = (r := shardlog.run(layer, *SHAPES, **given)).argument_shardings, r.result_shardings["y"]
        assert x.mesh == y.mesh == mesh and isinstance(x.mesh, Mesh) == concrete
        assert x.spec == y.spec == P("data", None)
        assert r.result.options.mesh == "data=2,model=4"


def test_another_mesh_in_place_of_the_module_s() -> None:
    # A scalar is on a mesh without axes, which nobody means.
    mesh = jax.make_mesh((2, 4), ("data", "model"))
    x = jax.device_put(jnp.ones((8, 16)), NamedSharding(mesh, P("data")))
    lowered = jax.jit(lambda x, rate: x * rate).lower(x, jnp.float32(1.0))
    result = shardlog.run(lowered, mesh="data=4,model=2")
    assert dict(result.argument_shardings[0].mesh.shape) == {"data": 4, "model": 2}


def test_equal_meshes_are_one() -> None:
    """JAX 0.12 declares a second mesh, equal to the first, for a ``jax.shard_map``."""
    text = """
        sdy.mesh @mesh = <["data"=2, "model"=4]>
        sdy.mesh @mesh_0 = <["data"=2, "model"=4]>
        func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh_0, [{"model"}, {}]>})
            -> tensor<8x16xf32> {
          %0 = stablehlo.tanh %x : tensor<8x16xf32>
          return %0 : tensor<8x16xf32>
        }"""
    changed = shardlog.run(text, annotate={"%arg0": P("data")}).argument_shardings[0]
    assert changed.spec == P("data", None)
    both = shardlog.run(text, mesh="data=4,model=2").text()
    assert both.count("sdy.mesh") == both.count('["data"=4, "model"=2]') > 0
    assert shardlog.auto(text, compare=False).plan.mesh == "data=2,model=4"


def test_of_annotations_that_are_added_the_later_ones_count() -> None:
    result = shardlog.run(layer, *SHAPES, mesh=MESH, annotate={"x": P("data"), "params['w']": P()})
    again = run_again(run_again(result.result, {"x": P("model")}), {"x": P()})
    assert again.options.annotate == ("x=[{}, {}]", "params['w']=[{}, {}]")


def test_any_name_of_an_axis() -> None:
    mesh = AbstractMesh((2,), ('a", "b=1',), axis_types=(AxisType.Auto,))
    result = shardlog.run(layer, *SHAPES, mesh=mesh, annotate={"x": P('a", "b=1')})
    assert result.argument_shardings[1] == NamedSharding(mesh, P('a", "b=1', None))


def test_values_by_path_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "m.mlir"
    module.write_text(jax.jit(layer).lower(*SHAPES).as_text(debug_info=True))
    arguments = ["query", str(module), "sharded(v, d, k, x), argument(v, i)", "--mesh", "model=4"]
    assert main([*arguments, "--annotate", "params['w']=[{}, {\"model\"}]"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()[2:]] == [
        ["%arg0", "0", "0", "model", "0"],
        ["%arg1", "1", "0", "model", "1"],
    ]
    assert main([*arguments, "--annotate", "params['u']=[{}, {}]"]) == 2
    assert "there is no value params['u']\n  hint: did you mean params['w']" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mesh": 3}, "cannot read a mesh from a int"),
        ({"rules": [3]}, "3 is not a path"),
        ({"annotate": {"x": 3}}, "cannot read a sharding from a int"),
        ({"annotate": {"z": P()}}, "there is no value z"),
        ({"annotate": {"x": P(None, None, "data")}}, "has 3 dimensions, and x has 2"),
        ({"annotate": {"x": P("dota")}}, r'unknown axis name: "dota"\n  hint: did you mean "data"'),
        (
            {"mesh": "data=2", "annotate": {"x": NamedSharding(MESH, P())}},
            "the mesh of the sharding, data=2,model=4",
        ),
        ({"annotate": (P(), P(), P())}, "the annotations do not match the arguments"),
        ({"annotate": ["x"]}, "not an annotation"),
        ({"annotate": ["x=[{}, {}]", "%arg2=[{}, {}]"]}, "another annotation is of this value"),
        ({"annotate": {"x": P("data"), "params['w']": P("dota")}}, r"^--annotate 'params\['w'\]"),
    ],
)
def test_bad_input(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ShardlogError, match=message):
        shardlog.run(layer, *SHAPES, **{"mesh": MESH, **given})
