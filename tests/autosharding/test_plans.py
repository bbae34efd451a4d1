"""Plans that are applied to another size of their model, compared, and carried out by a jitted function."""

from __future__ import annotations

import base64
import io
import json
import re
import sys
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from shardlog.autosharding.applying import applied
from shardlog.autosharding.automatic import plan, session_of
from shardlog.autosharding.comparing import Changed, compared
from shardlog.autosharding.options import AutoOptions
from shardlog.autosharding.plan import AutoPlan
from shardlog.autosharding.weighing import weighed
from shardlog.cli import main
from shardlog.cost.hlo import hlo_bytes
from shardlog.errors import ShardlogError
from shardlog.partition.improving import TooLargeError

_KEPT = ("batch=data", "params['layers'][0]['up']=-,model", "params['layers'][0]['down']=model")
_OPTIONS = AutoOptions(mesh="data=4,model=2", topology="h100", compare=False, keep=_KEPT)


def _loss(params: Any, batch: Any) -> Any:
    x = batch["x"]
    for layer in params["layers"]:
        x = x + jnp.tanh(x @ layer["up"]) @ layer["down"]
    return ((x @ params["last"]) ** 2).mean()


def _step(params: Any, batch: Any) -> Any:
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(_loss)(params, batch))


def _values(layers: int = 1, width: int = 64, hidden: int = 256, rows: int = 256, *, last: int = 8) -> Any:
    def array(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.float32)  # type: ignore[no-untyped-call]

    layer = {"up": array(width, hidden), "down": array(hidden, width)}
    return {"layers": [layer] * layers, "last": array(width, last)}, {"x": array(rows, width)}


def _text(**sizes: int) -> str:
    lowered = jax.jit(_step).trace(*_values(**sizes)).lower(lowering_platforms=("cpu",))
    return str(lowered.as_text(debug_info=True))


@pytest.fixture(scope="module")
def small() -> AutoPlan:
    return plan(_text(), _OPTIONS)


def _by_name(of: AutoPlan) -> dict[str, Any]:
    return {placed.name: placed.spec for placed in of.arguments}


def test_a_plan_fits_a_model_that_is_wider_and_deeper(small: AutoPlan) -> None:
    text = _text(layers=3, width=128, rows=512)
    large = applied(text, small, AutoOptions(topology="h100"))
    specs, before = _by_name(large), _by_name(small)
    for n in range(3):
        assert specs[f"params['layers'][{n}]['up']"] == (None, "model") == before["params['layers'][0]['up']"]
    assert specs["batch['x']"] == before["batch['x']"]
    assert (large.notes, large.sum, large.bound, large.gap) == ((), None, None, None)
    cost = session_of(text, large).cost(topology="h100")
    assert (large.seconds, large.peak) == (cost.seconds, cost.peak)


def test_it_comes_back_from_its_file(small: AutoPlan, tmp_path: Path) -> None:
    large = applied(_text(layers=2), small, AutoOptions())
    (tmp_path / "plan.json").write_text(large.text)
    assert AutoPlan.read(tmp_path / "plan.json") == large


def test_what_axes_do_not_divide_is_whole_and_said(small: AutoPlan) -> None:
    odd = applied(_text(hidden=255), small, AutoOptions())
    assert _by_name(odd)["params['layers'][0]['up']"] == (None, None)
    note = "params['layers'][0]['up'] is whole in dimension 1: 2 parts do not divide 255"
    assert note in odd.notes


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mesh": "data=8"}, "the mesh has no axis model"),
        ({"devices": 6}, "a mesh of 8 devices, and --devices 6"),
        ({"memory": "70KiB"}, "at most 70 KiB"),
        ({"memory": "1KiB"}, "the arguments alone need"),
    ],
)
def test_what_does_not_fit_is_refused(small: AutoPlan, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ShardlogError, match=said):
        applied(_text(), small, AutoOptions.of(**change))


def test_a_plan_of_another_model_is_refused(small: AutoPlan) -> None:
    other = jax.jit(lambda other: jnp.tanh(other)).lower(jnp.ones((64, 64))).as_text(debug_info=True)
    with pytest.raises(ShardlogError, match="this program has no argument of the plan"):
        applied(other, small, AutoOptions())
    batch = jax.ShapeDtypeStruct((8, 8, 8), jnp.float32)  # type: ignore[no-untyped-call]
    deep = jax.jit(lambda batch: jnp.tanh(batch["x"])).lower({"x": batch}).as_text(debug_info=True)
    with pytest.raises(ShardlogError, match="has 3 dimensions, and 2 in the plan"):
        applied(deep, small, AutoOptions())


def test_plans_are_compared_by_name(small: AutoPlan) -> None:
    other = plan(_text(layers=2), AutoOptions(mesh="data=8", topology="h100", keep=("batch=-,data",)))
    difference = compared(small, other)
    assert Changed("argument", "batch['x']", ("data", None), (None, "data")) in difference.changed
    assert difference.mesh == ("data=4,model=2", "data=8")
    added = [each for each in difference.changed if each.name == "params['layers'][1]['up']"]
    assert [each.before for each in added] == [None]
    assert compared(small, small).changed == ()


def _run(words: Sequence[str | Path]) -> int:
    return main([*map(str, words)])


def test_commands_apply_and_compare_plans(
    small: AutoPlan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module, before, after = tmp_path / "m.mlir", tmp_path / "small.json", tmp_path / "large.json"
    module.write_text(_text(layers=2, hidden=255))
    before.write_text(small.text)
    assert _run(["auto", module, "--plan", before, "-o", after, "--program", tmp_path / "p.mlir"]) == 0
    said = capsys.readouterr().out
    assert "mesh data=4,model=2 on h100" in said
    assert "params['layers'][1]['up'] is whole in dimension 1" in said
    assert "gap" not in said
    assert "func.func" in (tmp_path / "p.mlir").read_text()
    assert _run(["diff-plan", before, after]) == 1
    assert "argument params['layers'][0]['up']    P(None, 'model') -> P()" in capsys.readouterr().out
    assert _run(["diff-plan", before, before, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] == []


@pytest.mark.parametrize("text", ["{}", "no JSON", '{"version": 2}', None, "twice"])
def test_what_is_no_plan_is_refused_and_nothing_written(
    text: str | None, small: AutoPlan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module, given, output = tmp_path / "m.mlir", tmp_path / "given.json", tmp_path / "out.json"
    module.write_text(_text())
    if text == "twice":
        text = small.text.replace('"data"', '["data", "data"]')
    if text is not None:
        given.write_text(text)
    assert _run(["auto", module, "--plan", given, "-o", output]) == 2
    assert "given.json: error: " in capsys.readouterr().err
    assert not output.exists()
    assert _run(["auto", module, "--plan", given, "-o", given]) == 2
    assert _run(["diff-plan", given, given]) == 2


def test_a_mesh_that_was_not_given_is_not_refused_as_if_it_was(
    small: AutoPlan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module, given = tmp_path / "m.mlir", tmp_path / "given.json"
    given.write_text(small.text.replace('"data=4,model=2"', '"data="', 1))
    module.write_text(_text())
    assert _run(["auto", module, "--plan", given]) == 2
    assert "--plan, its mesh data=: error: not a mesh" in capsys.readouterr().err
    assert _run(["auto", module, "--plan", given, "--method", "mutate"]) == 2
    assert capsys.readouterr().err.startswith("--method: error: a search, mutate, and a plan to apply")
    sharding = '{sdy.sharding = #sdy.sharding<@mesh, [{"own"}, {}]>}'
    module.write_text(
        'sdy.mesh @mesh = <["own"=2]>\n'
        f"func.func @main(%x: tensor<8x8xf32> {sharding}) -> tensor<8x8xf32> {{\n"
        "return %x : tensor<8x8xf32>\n}"
    )
    assert _run(["auto", module, "--devices", "4"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("--devices: error: no mesh of 4 devices fits: ")
    assert "leave it out to plan on the mesh of the module" in said


def test_a_function_takes_a_plan(small: AutoPlan, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(small.text)
    params, batch = _values(layers=2, width=32)
    best = shardlog.auto(_step, params, batch, plan=tmp_path / "plan.json")
    assert tuple(best.specs[0]["layers"][1]["up"]) == (None, "model")
    assert best.plan.topology == "h100"
    rng = np.random.default_rng(0)
    values = jax.tree.map(lambda s: rng.normal(size=s.shape).astype(np.float32) / 8, (params, batch))
    outputs, expected = best.jit()(*values), jax.jit(_step)(*values)
    for one, other in zip(jax.tree.leaves(outputs), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_jitted_function_keeps_its_static_and_donated_arguments() -> None:
    def repeated(times: int, w: Any, x: Any, *, doubled: bool = True) -> Any:
        for _ in range(times):
            x = jnp.tanh(x @ w)
        return (w * 2 if doubled else w + 1), x.sum()

    jitted = jax.jit(repeated, static_argnums=0, static_argnames="doubled", donate_argnums=1)
    w, x = np.ones((64, 64), np.float32), np.ones((256, 64), np.float32)
    for doubled in (True, False):
        best = shardlog.auto(jitted, 2, w, x, doubled=doubled, mesh="data=8", compare=False)
        assert best.plan.state == {0: 0}
        given = jax.device_put(w, jax.sharding.NamedSharding(_mesh(best), best.specs[0]))
        new, total = best.jit()(2, given, x, doubled=doubled)
        np.testing.assert_allclose(total, repeated(2, w, x)[1], rtol=1e-5)
        np.testing.assert_allclose(new, w * 2 if doubled else w + 1)
        assert given.is_deleted()


def _mesh(found: Any) -> Any:
    axes = [axis.split("=") for axis in found.plan.mesh.split(",")]
    return jax.make_mesh([int(size) for _, size in axes], [name for name, _ in axes])


def test_the_program_sends_in_xla_what_its_plan_says(small: AutoPlan) -> None:
    by_data = AutoOptions(mesh="data=8", topology="h100", compare=False, keep=("batch=data",))
    for text, of in ((_text(), small), (_text(layers=2), plan(_text(layers=2), by_data))):
        program = session_of(text, of).partition(topology=of.topology)
        ours = sum(each.total for each in program.collectives)
        assert ours > 0
        assert hlo_bytes(program.compile().hlo) <= 1.1 * ours


def test_standard_input_is_read_once(
    small: AutoPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.json").write_text(small.text)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(_text().encode())))
    assert _run(["auto", "-", "--plan", tmp_path / "plan.json", "--program", tmp_path / "p.mlir"]) == 0
    assert "func.func" in (tmp_path / "p.mlir").read_text()


# ---- Why a plan is as it is -----------------------------------------------------------------------------


@pytest.mark.slow
def test_other_layouts_are_weighed_by_the_cost_of_their_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan that a limit decides has other layouts over the limit."""
    text, name = _text(), "params['layers'][0]['up']"
    keep = ("batch=data", "params['last']=-", "params['layers'][0]['down']=data", f"{name}=-,data")
    divided = plan(text, AutoOptions(mesh="data=8", topology="h100", compare=False, keep=keep))
    with pytest.raises(TooLargeError) as refused:
        applied(text, divided, AutoOptions(topology="h100", memory=100_000))
    limit = refused.value.least
    of = applied(text, divided, AutoOptions(topology="h100", memory=limit))
    alternatives = weighed(text, of, name)
    assert {each.spec for each in alternatives} == {("data", None), (None, None)}
    assert [each.over for each in alternatives] == sorted(each.over for each in alternatives)
    (whole,) = [each for each in alternatives if each.spec == (None, None)]
    assert whole.over and whole.peak > limit
    free = weighed(text, replace(of, memory=None), name)
    assert not any(each.over for each in free)
    arguments, results = (
        tuple(replace(each, spec=free[0].spec) if "['up']" in each.name else each for each in side)
        for side in (of.arguments, of.results)
    )
    changed = replace(of, arguments=arguments, results=results)
    cost = session_of(text, changed).cost(topology="h100")
    assert (free[0].seconds, free[0].peak) == (cost.seconds, cost.peak)
    (tmp_path / "m.mlir").write_text(text)
    (tmp_path / "plan.json").write_text(of.text)
    assert _run(["why-plan", name, tmp_path / "plan.json", "--module", tmp_path / "m.mlir"]) == 0
    said = capsys.readouterr().out
    assert "the limit of" in said
    assert said.startswith(f"{name} has P(None, 'data') on data=8: ")


def test_a_module_of_another_plan_is_refused(small: AutoPlan) -> None:
    with pytest.raises(ShardlogError, match="a plan of another program"):
        weighed(_text(layers=2), small, "batch['x']")
    with pytest.raises(ShardlogError, match="the plan has no argument nosuch"):
        weighed(_text(), small, "nosuch")


@pytest.mark.slow
def test_the_plot_and_the_report_have_all_plans_that_were_costed(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(_text())
    files = {"plot": tmp_path / "plot.svg", "report": tmp_path / "report.html"}
    words: list[str | Path] = ["auto", tmp_path / "m.mlir", "--mesh", "data=4,model=2", "--topology", "h100"]
    words += ["-o", tmp_path / "plan.json"]
    assert _run([*words, "--plot", files["plot"], "--report", files["report"]]) == 0
    texts = [each.text for each in ElementTree.parse(files["plot"]).iter("{http://www.w3.org/2000/svg}text")]
    for name in ("data parallel", "ZeRO-1", "ZeRO-3", "Megatron over model", "sequence over model"):
        assert name in texts
    assert all(each.written for each in AutoPlan.read(tmp_path / "plan.json").tried)
    data = re.search(r'<script id="data" type="text/plain">(.*?)</script>', files["report"].read_text())
    assert data is not None
    plan_of = json.loads(zlib.decompress(base64.b64decode(data[1])))["plan"]
    assert base64.b64decode(plan_of["picture"]).decode() == files["plot"].read_text()
    assert {"ZeRO-3", "data parallel"} <= {row[0] for row in plan_of["tried"]}
    assert [row[0] for row in plan_of["specs"]][:1] == ["argument params['last']"]
