"""Schedules of tactics: what they name, what they annotate, and that the result is Shardy's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import shardlog
from shardlog import Tactic, cli
from shardlog.errors import ShardlogError
from shardlog.propagation.schedules.schedule import Applied
from shardlog.propagation.schedules.tactics import ReadTactic, TacticRule, read_schedule

from ..support import oracle
from ..support.compare import differences
from ..support.drawing import in_turn
from ..support.schedules import CASES, case

MLP = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%arg0: tensor<8x16xf32> loc("x"), %arg1: tensor<16x32xf32> loc("params['layers'][0]['up']"),
                %arg2: tensor<32x16xf32> loc("params['layers'][0]['down']"), %arg3: tensor<3xf32> loc("params['gain']"))
    -> (tensor<8x16xf32> {jax.result_info = "result['y']"}, tensor<3xf32> {jax.result_info = "result['gain']"}) {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = stablehlo.dot %0, %arg2 : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %1, %arg3 : tensor<8x16xf32>, tensor<3xf32>
}
"""  # noqa: E501


def shardings(schedule: Any, text: str = MLP, **options: Any) -> list[str]:
    """The shardings of the arguments as a text per argument: its dimensions, apart by |."""
    facts = shardlog.run(text, schedule=schedule, **options).facts
    shardings = []
    for v, _ in sorted(facts["argument"], key=lambda row: row[1]):
        rank = sum(w == v for w, _, _ in facts["dim"])
        axes = [" ".join(x for w, e, _, x in facts["sharded"] if (w, e) == (v, d)) for d in range(rank)]
        shardings.append("|".join(axes))
    return shardings


def test_one_tactic_after_the_other() -> None:
    batch, megatron = "batch: x -> data", "megatron: params.layers.*.up[1] -> model"
    assert shardings(batch) == ["data|", "|", "|", ""]
    assert shardings(f"{batch}; {megatron}") == ["data|", "|model", "model|", ""]
    assert shardings(f"{batch}; {megatron}; zero: params -> data") == [
        "data|",
        "data|model",
        "model|data",  # the first dimension is taken by what megatron propagated
        "",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "params['layers'][0]['up'][1]",
        "params['layers'][*]['up'][1]",
        'params["layers"][0]["up"][1]',
        "params.layers.0.up[1]",
        "params.*.*.u*[-1]",
        "%arg1[1]",
    ],
)
def test_names(name: str) -> None:
    assert shardings(f"t: {name} -> model") == ["|", "|model", "model|", ""]


def test_a_prefix_names_all_below_it_and_results_come_after_arguments() -> None:
    assert shardings("t: params.layers[1] -> data") == ["|", "|data", "|data", ""]
    assert shardings("t: result.y[1] -> model") == ["|", "|", "|model", ""]
    assert shardings("t: result#0[0] -> data") == ["data|", "|", "|", ""]


def test_a_number_in_brackets_is_a_path_where_there_is_one() -> None:
    text = MLP.replace("params['layers'][0]['up']", "w[0]")
    text = text.replace("params['layers'][0]['down']", "w[1]")
    assert shardings("t: w[1] -> model", text) == ["|", "|model", "model|", ""]  # dimension 0 of w[1]
    assert shardings("t: w[1][1] -> model", text) == ["|", "|", "|model", ""]
    assert shardings("t: w.*[1] -> data", text) == ["|", "|data", "|data", ""]


def test_axes_of_one_dimension_stand_together_major_to_minor() -> None:
    assert shardings("t: x[1] -> (model, data)") == ["|model data", "model data|", "|", ""]


def test_replicated_keeps_an_axis_away() -> None:
    given = "batch: params.layers.0.up[0] -> data"
    assert shardings(given)[0] == "|data"
    assert shardings(f"{given}, x[replicated] -> data")[0] == "|"


def test_what_cannot_be_sharded_is_left() -> None:
    result = shardlog.run(MLP, schedule="a: x[1] -> data; b: x, params -> data; c: %arg3 -> model")
    left = {tactic.name: [(one.tensor, one.reason) for one in tactic.left] for tactic in result.tactics}
    assert left == {
        "a": [],
        "b": [
            ("x", "it is sharded on data already"),
            ("params['layers'][0]['up']", "it is sharded on data already"),
            ("params['gain']", "none of its dimensions is divisible by 2"),
        ],
        "c": [("params['gain']", "none of its dimensions is divisible by 4")],
    }


# ---- The text and the objects ------------------------------------------------------------------------------

TEXT = """
# data parallelism first
batch: x[0] -> (data, model);
zero-3: params['layers'], params.gain -> data,   # the optimizer comes later
        result#0[1] -> model;
"""


def test_text() -> None:
    assert read_schedule(TEXT) == (
        ReadTactic("batch", (TacticRule("x[0]", ("data", "model"), "schedule:3:8"),)),
        ReadTactic(
            "zero-3",
            (
                TacticRule("params['layers']", ("data",), "schedule:4:9"),
                TacticRule("params.gain", ("data",), "schedule:4:27"),
                TacticRule("result#0[1]", ("model",), "schedule:5:9"),
            ),
        ),
    )


def test_files_and_objects_say_the_same_as_text(tmp_path: Path) -> None:
    text = "batch: x[0] -> data; megatron: params.layers.*.up[1] -> model, params.gain -> data"
    (tmp_path / "tactics").write_text(text.replace(";", " ;\n"))
    tactics = [
        Tactic("batch", {"x[0]": "data"}),
        Tactic("megatron", {"params.layers.*.up[1]": ("model",), "params.gain": "data"}),
    ]
    expected = shardlog.run(MLP, schedule=text).text()
    for schedule in (tactics, tmp_path / "tactics", str(tmp_path / "tactics")):
        assert shardlog.run(MLP, schedule=schedule).text() == expected


# ---- Priorities --------------------------------------------------------------------------------------------

ANNOTATED = MLP.replace(
    'tensor<8x16xf32> loc("x")',
    'tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}p3, {?}]>} loc("x")',
)


def test_tactics_come_after_the_annotations_of_the_module() -> None:
    schedule = "up: params.layers.*.up[1] -> model; down: params.layers.*.down[1] -> data"

    def priorities(text: str, **options: Any) -> list[int]:
        return [tactic.priority for tactic in shardlog.run(text, schedule=schedule, **options).tactics]

    assert priorities(MLP) == [0, 1]
    assert priorities(ANNOTATED) == [4, 5]
    assert priorities(MLP, annotate=["%arg3=[{}]"]) == [1, 2]


def test_until() -> None:
    schedule = "batch: x[0] -> data; megatron: params.layers.*.up[1] -> model"
    assert shardings(schedule, until="batch") == ["data|", "|", "|", ""]
    assert shardings(schedule, until=0) == ["data|", "|", "|", ""]
    assert shardings(schedule, until="megatron") == shardings(schedule)
    stages = shardlog.run(ANNOTATED, until=3, schedule="up: params.layers.*.up[1] -> model").stages
    assert {stage.priority for stage in stages} == {0, 3}


def test_annotations_are_those_that_one_would_write() -> None:
    schedule = "batch: x -> data; megatron: params.layers.*.up[1] -> model; zero: params.layers -> data"
    annotations = [
        '%arg0=[{"data", ?}, {?}]',
        '%arg1=[{"data", ?}p2, {"model", ?}p1]',
        '%arg2=[{?}, {"data", ?}p2]',
    ]
    assert shardlog.run(MLP, schedule=schedule).text() == shardlog.run(MLP, annotate=annotations).text()


# ---- JAX models, against Shardy ----------------------------------------------------------------------------


def annotated(text: str, tactics: Sequence[Applied]) -> str:
    """The module with what tactics shard as annotations of its arguments."""

    def annotation(match: re.Match[str]) -> str:
        dims = ["{?}"] * match[2].count("x")
        replicated: list[str] = []
        for tactic in tactics:
            for given in tactic.given:
                axes = [f'"{axis}"' for axis in given.axes]
                if given.tensor == match[3] and given.dim is None:
                    replicated += axes
                elif given.tensor == match[3] and given.dim is not None:
                    dims[given.dim] = f"{{{', '.join(axes)}, ?}}p{tactic.priority}"
        rest = f", replicated={{{', '.join(replicated)}}}" if replicated else ""
        sharding = f"<@mesh, [{', '.join(dims)}]{rest}>"
        return f"{match[1]} {{sdy.sharding = #sdy.sharding{sharding}}} {match[0][len(match[1]) :].lstrip()}"

    return re.sub(r'(%arg\d+: tensor<([\dx]+)\w+>) loc\("([^"]+)"\)', annotation, text)


@pytest.mark.parametrize(("name", "scan"), in_turn(0, CASES))
def test_the_result_is_what_shardy_makes_of_the_priorities(name: str, scan: bool) -> None:
    text, schedule = case(name, scan)
    result = shardlog.run(text, schedule=schedule, strict_shardy=True)
    assert len(result.tactics[-1].given) > 5
    differing = differences(result.text(), oracle.propagate(annotated(text, result.tactics)))
    assert not differing, "\n".join(differing)


@pytest.mark.parametrize(("name", "scan"), in_turn(1, CASES))
def test_a_later_tactic_changes_nothing_of_what_was_before(name: str, scan: bool) -> None:
    text, schedule = case(name, scan)
    whole = shardlog.run(text, schedule=schedule)
    steps = schedule.split(";")
    for i, tactic in enumerate(whole.tactics[:-1]):
        until = shardlog.run(text, schedule=schedule, until=tactic.name).facts["sharded"]
        assert until == shardlog.run(text, schedule=";".join(steps[: i + 1])).facts["sharded"]
        assert set(until) < set(whole.facts["sharded"])


# ---- Bad input ---------------------------------------------------------------------------------------------

BAD = {
    "": "schedule:1:1: error: a schedule without tactics",
    "x -> data": "schedule:1:3: error: expected :, found ->",
    "1: x -> data": "schedule:1:1: error: 1 is not the name of a tactic",
    "a: x -> data b: x -> model": "schedule:1:14: error: expected ;, found b",
    "a: x -> data, model": "schedule:1:20: error: expected ->, found the end",
    "a:\n  x -> (data": "schedule:2:13: error: expected ), found the end",
    "a: -> data": "schedule:1:4: error: expected a name, found ->",
    "a: params['x -> data": "schedule:1:10: error: unexpected [",
    "a: x -> data; a: x -> model": "schedule: error: there are two tactics a",
    "a: params.*.*.upp -> data": "did you mean params.layers.*.up?",
    "a: y -> data": "schedule:1:4: error: there is no argument or result y",
    "a: x -> dota": "the mesh @mesh has no axis dota\n  hint: did you mean data?",
    "a: x -> (data, data)": "the axis data is listed twice",
    "a: params.gain[1] -> data": "params['gain'] has 1 dimension, there is none 1",
    "a: x[-3] -> data": "x has 2 dimensions, there is none -3",
    "a: params.gain[0] -> data": "dimension 0 of params['gain'] has size 3, which 2 does not divide",
    "a: x[0] -> data; b: x[0] -> model": "dimension 0 of x is sharded by tactic a already\n"
    "  hint: a dimension has one priority; name its axes at once, x[0] -> (data, model)",
    "a: x[0] -> data; b: x[1] -> data": "schedule:1:21: error: x is sharded on data already",
    "a: x[0], x[replicated] -> data": "schedule:1:10: error: x is sharded on data already",
}


@pytest.mark.parametrize("schedule", BAD)
def test_bad_schedules(
    schedule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(MLP)
    assert cli.main(["run", "m.mlir", "-o", "out.mlir", "--schedule", schedule]) == 2
    message = capsys.readouterr().err
    assert BAD[schedule] in message
    assert message.count("error:") == 1 and "\n  hint: " in message
    assert not Path("out.mlir").exists()


def check_fails(match: str, text: str = MLP, **options: Any) -> None:
    with pytest.raises(ShardlogError, match=match):
        shardlog.run(text, **options)


def test_other_bad_input() -> None:
    one = "a: x[0] -> data"
    closed = ["%arg0=[{}, {?}]"]
    check_fails("the module has no mesh\n  hint: give it one", MLP.split("\n", 1)[1], schedule=one)
    two = MLP.replace("func.func", 'sdy.mesh @other = <["more"=4]>\nfunc.func')
    check_fails("the module has 2 meshes", two, schedule=one)
    token = MLP.replace("@main(", '@main(%t: !stablehlo.token loc("t"), ')
    check_fails("t is not a tensor", token, schedule="a: t[0] -> data")
    check_fails("dimension 0 of x is closed in the module", schedule=one, annotate=closed)
    check_fails(
        "dimension 0 of x is annotated in the module", schedule=one, annotate=['%arg0=[{"model"}, {}]']
    )
    check_fails("no tactics with strategy basic", schedule=one, strategy="basic")
    check_fails("nowhere: error: cannot read the schedule: No such file", schedule="nowhere")
    check_fails("/dev/zero: error: cannot read the schedule: it is larger than", schedule="/dev/zero")
    check_fails("there is no tactic or priority b\n  hint: there are: a, 0", schedule=one, until="b")
    check_fails("tactic a b:1:3: error: expected :, found b", schedule=[Tactic("a b", {"x": "data"})])
    check_fails(
        "tactic a:1:4: error: there is no argument or result y", schedule=[Tactic("a", {"y": "data"})]
    )


def test_modules_without_paths_say_how_to_get_them() -> None:
    check_fails(
        "%arg0.*; the module has no names .* debug_info=True",
        re.sub(r" loc\(.*?\)|{jax.*?}", "", MLP),
        schedule="a: x -> data",
    )
