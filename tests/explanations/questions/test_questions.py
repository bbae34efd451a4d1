"""The same questions to a result, a saved run and what explains one, with answers that show themselves."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardlog
from jax import sharding
from jax.sharding import AbstractMesh
from shardlog.cli import main
from shardlog.errors import ShardlogError

P: Any = sharding.PartitionSpec  # which have no types
MESH = AbstractMesh((2, 4), ("data", "model"), axis_types=(sharding.AxisType.Auto,) * 2)
SHAPES = {"w<1>": jnp.ones((16, 32)), "v": jnp.ones((32, 16))}, jnp.ones((8, 16))


def layer(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """Two matrix products."""
    return jnp.tanh(x @ params["w<1>"]) @ params["v"]


ASKED = {"params['w<1>']": P(None, "model"), "x": P("data"), "params['v']": P(P.UNCONSTRAINED, "data")}


@pytest.fixture(scope="module", params=["result", "saved", "explained", "explained saved"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run in each of its forms."""
    result = shardlog.run(layer, *SHAPES, mesh=MESH, annotate=ASKED)
    path = tmp_path_factory.mktemp("runs") / "run.shardlog"
    result.save(path)
    saved = shardlog.open(path)
    forms = {"result": result, "saved": saved, "explained": shardlog.explain(result)}
    return forms.get(request.param, shardlog.explain(saved))


def test_questions(run: Any, tmp_path: Path) -> None:
    (why,) = run.why("params['v']", 0)
    assert why.origin.where == "params['w<1>']"
    (why_not,) = run.why_not("params['w<1>']", 0, "data")
    assert why_not.axis == "data"
    assert repr(run.conflicts()).splitlines()[1].startswith("2 tensors must move")
    assert repr(run.query("argument(v, 2), sharded(v, d, _, x)")) == (
        "v      d  x\n-----  -  ----\n%arg2  0  data"
    )
    assert "tensors are sharded otherwise" in repr(run.what_if(drop="params['v']"))
    changed = [run.what_if(given).diff.tensors for given in ({"x": P()}, ["x=[{}, {}]"])]
    assert changed[0] == changed[1] != ()
    basic = shardlog.run(layer, *SHAPES, mesh=MESH, annotate=ASKED, strategy="none")
    assert len(run.diff(basic).tensors) == len(shardlog.explain(basic).diff(run).tensors) > 0
    run.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!")
    run.save(tmp_path / "again")
    assert shardlog.open(tmp_path / "again").conflicts() == run.conflicts()
    with pytest.raises(ShardlogError, match="there is no value params"):
        run.why("params['u']")


class _Parsed(HTMLParser):
    """The cells of a page's tables, and its elements that are open at the end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open:
            self.cells[-1] += data


def test_a_session_shows_itself() -> None:
    result = shardlog.run(layer, *SHAPES, mesh=MESH, annotate=ASKED)
    assert repr(result) == "<Session of <module>: 3 arguments, 1 results; mesh @mesh: data=2, model=4>"
    page = _Parsed(result._repr_html_())
    assert not page.open
    assert page.cells[3:6] == ["params['w<1>']", "tensor<16x32xf32>", "[{}, {model}]"]
    assert page.cells[9:] == ["result", "tensor<8x16xf32>", "[{}, {data}]"]
    rows = _Parsed(result.query("mesh_axis(m, axis, size)")._repr_html_())
    assert rows.cells == ["mesh", "data", "2", "mesh", "model", "4"]
    assert repr(result.query('argument("%arg0", 0)')) == "yes"


def test_many_arguments_show_in_a_page_that_stays_small() -> None:
    many = [jnp.ones(2)] * 300
    result = shardlog.run(lambda *xs: sum(xs), *many)
    assert len(result._repr_html_()) < 20_000
    assert "200 more" in result._repr_html_()
    assert len(repr(result)) < 100


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    result = shardlog.run(layer, *SHAPES)
    with pytest.raises(ShardlogError, match="cannot write"):
        result.report(tmp_path / "none" / "page.html")


def test_the_text_is_that_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = shardlog.run(layer, *SHAPES, mesh=MESH, annotate=ASKED)
    result.save(tmp_path / "run")
    answer = result.what_if(drop="params['v']")
    assert main(["what-if", str(tmp_path / "run"), "--drop", "params['v']"]) == 0
    assert capsys.readouterr().out == f"{answer!r}\n"
