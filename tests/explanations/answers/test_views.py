"""Derivations as graphs, and as Python objects."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pydot
import pytest
import shardlog
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from shardlog.cli import main
from shardlog.errors import ShardlogError
from shardlog.explanations.answers.graphs import dot, mermaid
from shardlog.explanations.answers.why import Explanation
from shardlog.explanations.steps import Site
from shardlog.program.ids import Cell, Place
from shardlog.runs.records.record import Annotation
from shardlog.session import Explained

from ...support.drawing import drawing

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pydot")

MODULE = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}p1, {?}]>} loc("x"),
                %w: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>})
    -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> loc("model.py":7:3)
  %1 = stablehlo.tanh %0 : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}
"""
# A flowchart: nodes with quoted labels, and edges between nodes that may have one.
MERMAID = re.compile(
    r"flowchart TB\n"
    r'(  n\d+(\(("[^"]*")\)|\[\[("[^"]*")\]\])\n)+'
    r'(  n\d+ (-->(\|"[^"]*"\|)?|-\.->\|"rests on"\|) n\d+\n?)+'
)


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "dot.mlir"
    path.write_text(MODULE)
    return str(path)


def explained() -> Explained:
    return shardlog.explain(MODULE)


def parsed(text: str) -> pydot.Dot:
    graphs = pydot.graph_from_dot_data(text)
    assert graphs is not None
    return graphs[0]


def test_dot(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", module, "%1", "--dot"]) == 0
    graph = parsed(capsys.readouterr().out)
    labels = {n.get_name(): n.get("label") for n in graph.get_nodes() if n.get_name() != "node"}
    edges = {
        (labels[str(e.get_source())], labels[str(e.get_destination())]): e.get("label")
        for e in graph.get_edges()
    }
    up = r'"%0 dim 1 on \"model\"\ltensor<8x16xf32>\lmodel.py:7\l"'
    (turn,) = (label for (start, _), label in edges.items() if start == up)
    assert turn.startswith(r'"stablehlo.tanh')
    annotations = [label for label in labels.values() if label.startswith('"annotated')]
    assert len(annotations) == 2
    assert any(
        label == r'"its priority has come\luser priority 1, op priority 0, aggressive\l"'
        for label in edges.values()
    )


def test_mermaid(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", module, "%1", "--mermaid"]) == 0
    shown = capsys.readouterr().out
    assert MERMAID.fullmatch(shown)
    assert '("#37;1 dim 1 on #34;model#34;<br>tensor#60;8x16xf32#62;' in shown


LOOP = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %c = stablehlo.constant dense<false> : tensor<i1>
  %0 = stablehlo.while(%iterArg = %x) : tensor<8xf32> cond {
    stablehlo.return %c : tensor<i1>
  } do {
    %1 = stablehlo.tanh %iterArg : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
"""


@pytest.mark.parametrize("value", ["%iterArg", "%1", "result#0"])
def test_what_has_one_sharding_is_joined_in_a_graph(value: str) -> None:
    """What a loop carries has the sharding of the loop's result, by whose name turns are."""
    graph = parsed(dot(shardlog.explain(LOOP).why(value)))
    labels = {node.get_name(): node.get("label") for node in graph.get_nodes()}
    edges = {labels[str(e.get_destination())]: labels[str(e.get_source())] for e in graph.get_edges()}
    at = next(label for label in edges if label.startswith(f'"{value} dim 0'))
    while at in edges:
        at = edges[at]
    assert at.startswith('"annotated %arg0')


@drawing(20)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_any_name_can_stand_in_a_graph(name: str) -> None:
    annotation = Annotation(name, name, Cell(0), name)
    found = Explanation(Site(name, name, 0, name), name, Place(0), (0,), (), annotation, (annotation,))
    assert len(parsed(dot([found])).get_edges()) == 1
    assert MERMAID.fullmatch(mermaid([found]))


def test_objects() -> None:
    answer = explained()
    (why,) = answer.why("%1", 1, "model")
    assert repr(why) == '<why %1 dim 1 "model": by stablehlo.tanh, stablehlo.dot_general from %arg1>'
    assert str(why).startswith("%1 : tensor<8x16xf32>")
    assert "<details>" in why._repr_html_()
    (why_not,) = answer.why_not("%1", 1, "data")
    assert repr(why_not) == '<why not %1 dim 1 "data": in use>'
    assert "in use" in why_not._repr_html_()
    assert repr(answer.why("%1", 1)) == str(why)
    program = "program: least bytes (--keep-shardings: as decided; --topology MACHINE: least time there)"
    assert repr(answer.conflicts()).splitlines() == [program, "0 tensors must move, 0 bytes to each device"]
    assert repr(answer).splitlines() == [
        "mesh @mesh: data=2, model=4",
        "5 of 5 tensors are sharded, by 2 annotations",
        program,
        "0 tensors must move, 0 bytes to each device",
        "ask: .why(value), .why_not(value, dim, axis), .conflicts()",
    ]
    assert str(answer.visualize("%1")).startswith("[8/data, 16/model] on 8 devices")


def test_a_saved_run(tmp_path: Path) -> None:
    shardlog.run(MODULE).save(tmp_path / "run.shardlog")
    saved, live = shardlog.explain(shardlog.open(tmp_path / "run.shardlog")), explained()
    assert repr(saved) == repr(live)
    assert str(saved.visualize("%1")) == str(live.visualize("%1"))


def test_nothing_is_imported_that_is_not_asked_for() -> None:
    script = (
        "import sys, shardlog, inspect\n"
        "assert not {'jax', 'jaxlib', 'numpy'} & sys.modules.keys()\n"
        "assert inspect.isfunction(shardlog.explain) and 'jax' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_html_escapes_names() -> None:
    html = explained().why("%0", 0)._repr_html_()
    assert "tensor&lt;8x16xf32&gt;" in html
    assert "tensor<" not in html


def test_jax() -> None:
    mesh = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def spec(shape: tuple[int, ...], *axes: str | None) -> jax.ShapeDtypeStruct:
        sharding = NamedSharding(mesh, P(*axes))  # type: ignore[no-untyped-call]
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)  # type: ignore[no-untyped-call]

    def step(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ params["wq"])

    arguments = {"wq": spec((16, 32), None, "model")}, spec((8, 16), "data", None)
    for function in (step, jax.jit(step)):
        answer = shardlog.explain(function, *arguments, value="params['wq']")
        assert repr(answer).startswith("%arg0 : tensor<16x32xf32> at params['wq']\ndim 1 is sharded on")
        (why,) = answer.why("result", 1)
        assert why.origin.where == "params['wq']"
        assert why.steps[-1].where.split(":")[0].endswith("test_views.py")
        with pytest.raises(ShardlogError, match="no value params"):
            answer.why("params['wk']")
