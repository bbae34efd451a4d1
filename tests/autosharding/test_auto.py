"""Plans for programs without annotations: what is found, what stays, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from shardlog.autosharding.automatic import _best, costed_known, plan, program, session_of
from shardlog.autosharding.ends import ends_of
from shardlog.autosharding.options import AutoOptions
from shardlog.autosharding.plan import AutoPlan, Placed, Tried
from shardlog.autosharding.searching import TRIFLE, Search
from shardlog.autosharding.texts import plan_text, why_text
from shardlog.cli import main
from shardlog.errors import ShardlogError
from shardlog.partition.improving import TooLargeError
from shardlog.partition.reshards import planning

from ..support.drawing import by_day

_SIZES = (64, 256, 64)


def _step(params: Any, batch: Any) -> Any:
    def loss(params: Any) -> Any:
        x = batch[0]
        for w in params:
            x = jnp.tanh(x @ w)
        return ((x - batch[1]) ** 2).mean()

    value, slopes = jax.value_and_grad(loss)(params)
    return value, [w - 0.1 * g for w, g in zip(params, slopes, strict=True)]


def _text(rows: int = 1024, *, donate: bool = False) -> str:
    shaped: Any = jax.ShapeDtypeStruct
    params = [shaped(s, jnp.float32) for s in pairwise(_SIZES)]
    batch = [shaped((rows, size), jnp.float32) for size in (_SIZES[0], _SIZES[-1])]
    jitted = jax.jit(_step, donate_argnums=(0,) if donate else ())
    lowered = jitted.trace(params, batch).lower(lowering_platforms=("cpu",))
    return str(lowered.as_text(debug_info=True))


@pytest.fixture(scope="module")
def found() -> AutoPlan:
    return plan(_text(), AutoOptions(mesh="data=4,model=2", topology="h100"))


def test_a_batch_is_divided_and_costs_no_more_than_data_parallel(found: AutoPlan) -> None:
    text = _text()
    batch = {f"batch[{n}]": '[{"data", "model"}, {}]' for n in range(2)}
    by_hand = shardlog.run(text, mesh=found.mesh, annotate=batch).cost(topology="h100")
    assert found.seconds <= by_hand.seconds
    assert [each.name for each in found.arguments] == ["params[0]", "params[1]", "batch[0]", "batch[1]"]
    assert found.bound is not None and found.sum is not None and found.bound <= found.sum


def test_more_equal_layers_are_no_larger_problem() -> None:
    def rows(depth: int) -> int:
        shaped: Any = jax.ShapeDtypeStruct
        arguments = [shaped((64, 64), jnp.float32)] * depth, [shaped((256, 64), jnp.float32)] * 2
        text = jax.jit(_step).trace(*arguments).lower(lowering_platforms=("cpu",)).as_text()
        search = Search(text, "data=4,model=2", AutoOptions(topology="h100"), lambda what, done: None)
        return len(search._open._homes._variables.rows)

    assert rows(6) == rows(12)


def test_of_plans_with_equal_sums_one_program_is_written(found: AutoPlan) -> None:
    assert [each.name for each in found.tried if each.written and each.name.startswith("memory")] == [
        "memory at 0.016"
    ]


def test_known_strategies_are_costed_where_the_sum_misjudges() -> None:
    def convolve(x: Any, kernel: Any) -> Any:
        dims = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=dims)

    def step(kernels: Any, x: Any) -> Any:
        def loss(kernels: Any) -> Any:
            y = x
            for kernel in kernels:
                y = convolve(y, kernel)
            return (y**2).mean()

        return jax.tree.map(jnp.subtract, kernels, jax.grad(loss)(kernels))

    shaped: Any = jax.ShapeDtypeStruct
    kernels = [shaped((3, 3, features, 32), jnp.float32) for features in (3, 32)]
    x = shaped((64, 32, 32, 3), jnp.float32)
    text = jax.jit(step).trace(kernels, x).lower(lowering_platforms=("cpu",)).as_text(debug_info=True)
    options = AutoOptions(mesh="data=8", topology="h100")
    convolutional = plan(text, options)
    known = costed_known(text, convolutional, options).tried
    assert all(each.written for each in known)
    assert convolutional.seconds <= 1.005 * min(each.seconds for each in known)


def test_seconds_and_peak_are_those_of_the_program(found: AutoPlan) -> None:
    cost = session_of(_text(), found).cost(topology="h100")
    assert (cost.seconds, cost.peak) == (found.seconds, found.peak)


def test_state_comes_back_as_it_was(found: AutoPlan) -> None:
    assert found.state == {1: 0, 2: 1}
    for result, argument in found.state.items():
        assert found.results[result].spec == found.arguments[argument].spec


@pytest.mark.parametrize("donate", [False, True])
def test_state_is_known_by_donation_or_by_name(donate: bool) -> None:
    module = shardlog.run(_text(donate=donate), mesh="data=8").module
    assert ends_of(module, ("auto",)).state == {1: 0, 2: 1}
    assert ends_of(module, ("none",)).state == {}
    assert ends_of(module, ("params=result[1]",)).state == {1: 0, 2: 1}


def test_a_plan_is_the_same_each_time_and_comes_back_from_its_file(found: AutoPlan, tmp_path: Path) -> None:
    again = plan(_text(), AutoOptions(mesh="data=4,model=2", topology="h100"))
    assert again.text == found.text
    (tmp_path / "plan.json").write_text(found.text)
    assert AutoPlan.read(tmp_path / "plan.json") == found


def test_what_is_kept_stays(found: AutoPlan) -> None:
    options = AutoOptions(
        mesh="data=4,model=2", topology="h100", keep=("params[0]=-,model", "batch=data"), compare=False
    )
    kept = plan(_text(), options)
    assert kept.arguments[0].spec == (None, "model")
    assert kept.results[1].spec == (None, "model")
    assert [kept.arguments[n].spec for n in (2, 3)] == [("data", None)] * 2
    assert found.seconds <= kept.seconds


def test_the_program_gives_what_one_device_gives(found: AutoPlan) -> None:
    rng = np.random.default_rng(0)
    params = [rng.normal(size=s).astype(np.float32) / 8 for s in pairwise(_SIZES)]
    batch = [rng.normal(size=(1024, size)).astype(np.float32) for size in (_SIZES[0], _SIZES[-1])]
    outputs = program(_text(), found).compile()(*params, *batch)
    expected = jax.tree.leaves(jax.jit(_step)(params, batch))
    for one, other in zip(jax.tree.leaves(outputs), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--keep", "batch[0]=nosuch"], "the mesh has no axis nosuch"),
        (
            ["--keep", "nosuch=data"],
            "there is no argument nosuch\n  hint: there are: params, batch, params[0]",
        ),
        (["--keep", "batc=data"], "did you mean batch?"),
        (["--keep", "batch[0]=data", "--keep", "batch[0]=model"], "--keep 'batch[0]=data'"),
        (["--devices", "6"], "a mesh of 8 devices, and --devices 6"),
        (["--devices", "0"], "0 devices"),
        (["--devices", "100000000"], "expected at most 100,000"),
        (["--mesh", "data=1000000"], "a mesh of 1,000,000 devices"),
        (["--tie", "none", "--tie", "params=result[1]"], "none together with other ties"),
        (["--memory", "1KiB"], "the arguments alone need at least"),
        (
            ["--mesh", "data=7"],
            "is divided evenly by an axis of data=7",
        ),
        (["--topology", "v5e:2x2"], "a torus of 4 devices is too small"),
        (["--tie", "batch=result[0]"], "batch are 2 arguments"),
        (["--tie", "params[0]=result[1][0]", "--tie", "batch[0]=result[1][0]"], "--tie 'batch[0]=result"),
        (["--mesh", "data=x", "--devices", "8"], "--mesh 'data=x': error: not a mesh"),
        (["--keep", 'batch[0]=[{"data"}]'], "1 entries for batch[0], which has 2 dimensions"),
        (["--keep", 'batch[0]=[{"data":(1)2}, {}]'], "--keep 'batch[0]=[{\"data\":(1)2}, {}]'"),
        (["--keep", 'batch[0]=[{"nosuch"}, {}]'], "the mesh has no axis nosuch"),
        (["--keep", 'batch[0]=[{"data", {}]'], "not a sharding to keep"),
    ],
)
def test_bad_input_is_one_message_and_no_plan(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module, output = tmp_path / "m.mlir", tmp_path / "plan.json"
    module.write_text(_text())
    output.write_text("before")
    arguments = ["auto", str(module), "--mesh", "data=4,model=2", *words, "-o", str(output)]
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert said in message
    assert "Traceback" not in message
    assert output.read_text() == "before"


def test_unknown_sizes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "m.mlir"
    module.write_text(
        "func.func @main(%a: tensor<?x8xf32>) -> tensor<?x8xf32> {\n  return %a : tensor<?x8xf32>\n}\n"
    )
    assert main(["auto", str(module), "--mesh", "data=8"]) == 2
    assert "sizes are not known" in capsys.readouterr().err


@pytest.mark.parametrize("sharding", ['[{"data"}p1, {?}]', '[{"data":(1)2}, {}]'])
def test_a_sharding_of_the_module_stays_unless_it_has_parts_of_an_axis(sharding: str) -> None:
    text = f"""sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%x: tensor<64x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}})
    -> tensor<64x16xf32> {{
  %0 = stablehlo.tanh %x : tensor<64x16xf32>
  return %0 : tensor<64x16xf32>
}}
"""
    if "(1)2" not in sharding:
        assert plan(text, AutoOptions(compare=False)).arguments[0].spec == ("data", None)
        return
    with pytest.raises(ShardlogError, match="a plan has whole axes"):
        plan(text, AutoOptions(compare=False))


def test_the_command_writes_the_plan_and_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module, output = tmp_path / "m.mlir", tmp_path / "plan.json"
    module.write_text(_text())
    arguments = ["--devices", "8", "--mesh", "data=8", "--topology", "h100", "--no-compare"]
    assert (
        main(["auto", str(module), *arguments, "-o", str(output), "--program", str(tmp_path / "p.mlir")]) == 0
    )
    assert "mesh data=8 on h100" in capsys.readouterr().out
    written = json.loads(output.read_text())
    assert written["mesh"] == "data=8"
    assert [len(each["spec"]) for each in written["arguments"]] == [2, 2, 2, 2]
    assert "func.func" in (tmp_path / "p.mlir").read_text()


@pytest.mark.parametrize(
    "given",
    [
        {"devices": -1},
        {"devices": "8"},
        {"devices": 8.5},
        {"devices": True},
        {"axes": "2"},
        {"keep": 5},
        {"keep": ["batch=data", 3]},
        {"tie": [("params", "result[1]")]},
    ],
)
def test_values_of_other_types_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ShardlogError):
        AutoOptions.of(**given)


def test_names_of_axes_may_have_spaces() -> None:
    best = plan(_text(), AutoOptions(mesh='"a b"=4,model=2', topology="h100", compare=False))
    assert best.mesh == '"a b"=4,model=2'
    assert session_of(_text(), best).cost(topology="h100").seconds == best.seconds


def test_the_table_marks_the_plan_that_was_taken(found: AutoPlan) -> None:
    written = next(
        n for n, tried in enumerate(found.tried) if (tried.seconds, tried.peak) == (found.seconds, found.peak)
    )
    marked = [line for line in plan_text(found).splitlines() if line.endswith("  <- taken")]
    assert [line.split("  ")[0] for line in marked] == [found.tried[written].name]
    other = replace(found, seconds=found.seconds / 2)
    assert "<- taken" not in plan_text(other)


def test_a_known_strategy_is_taken_where_no_choice_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Search, "costed", lambda search: [])
    limited = plan(_text(), AutoOptions(mesh="data=4,model=2", topology="h100", memory=2**20))
    assert limited.peak <= 2**20
    assert limited.tried[0].name in {"data parallel", "ZeRO-1", "ZeRO-3"} or "over" in limited.tried[0].name


@pytest.mark.parametrize("mesh", by_day(["data=4,model=2"], ["data=4,model=2", ""]))
def test_what_is_refused_names_the_least_of_all_that_was_costed(mesh: str, found: AutoPlan) -> None:
    options = AutoOptions(mesh=mesh or None, devices=None if mesh else 8, topology="h100")
    unlimited = found if mesh else plan(_text(), options)
    with pytest.raises(TooLargeError) as refused:
        plan(_text(), replace(options, memory=100_000))
    assert refused.value.least <= min(tried.peak for tried in unlimited.tried)


def test_a_function_gets_specs_in_the_shape_of_its_arguments() -> None:
    shaped: Any = jax.ShapeDtypeStruct
    params = [shaped(s, jnp.float32) for s in pairwise(_SIZES)]
    batch = {n: shaped((1024, size), jnp.float32) for n, size in (("x", _SIZES[0]), ("y", _SIZES[-1]))}

    def step(params: Any, batch: Any) -> Any:
        return _step(params, (batch["x"], batch["y"]))

    best = shardlog.auto(step, params, batch, devices=8, topology="h100", keep="batch=data", compare=False)
    args = best.specs
    assert [len(args[0]), sorted(args[1])] == [2, ["x", "y"]]
    assert tuple(args[1]["x"]) == ("data", None)
    assert best.result_specs[1] == args[0]
    assert best.bound is not None and best.plan.sum is not None and best.bound <= best.plan.sum
    rng = np.random.default_rng(0)
    values = jax.tree.map(lambda s: rng.normal(size=s.shape).astype(np.float32) / 8, (params, batch))
    outputs, expected = best.jit()(*values), jax.jit(step)(*values)
    for one, other in zip(jax.tree.leaves(outputs), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_less_memory_is_a_slower_plan_and_a_front_has_both() -> None:
    text = _text(rows=64)
    best = shardlog.auto(text, mesh="data=8", topology="h100", compare=False)
    front = best.pareto()
    assert [one.seconds for one in front] == sorted(one.seconds for one in front)
    assert [one.peak for one in front] == sorted((one.peak for one in front), reverse=True)
    smallest = front[-1]
    limited = shardlog.auto(text, mesh="data=8", topology="h100", memory=smallest.peak, compare=False)
    assert limited.peak <= smallest.peak


def test_known_strategies_are_costed_and_none_is_better(found: AutoPlan) -> None:
    names = [tried.name for tried in found.tried]
    assert {"data parallel", "ZeRO-3", "Megatron over model", "Megatron over data"} <= set(names)
    assert found.seconds <= 1.005 * min(tried.seconds for tried in found.tried)


def test_known_strategies_of_all_costed_meshes_are_compared() -> None:
    tried = plan(_text(), AutoOptions(devices=8, topology="h100")).tried
    chosen = {each.mesh for each in tried if each.name.startswith("memory")}
    assert len(chosen) == 2
    assert all(chosen == {each.mesh for each in tried if each.name == name} for name in ("ZeRO-1", "ZeRO-3"))


def test_layouts_beside_a_known_strategy_have_prices() -> None:
    search = Search(_text(), "data=4,model=2", AutoOptions(topology="h100"), lambda stage, done: None)
    known = {each.candidate.name: each for each in search.strategies()}
    for name in ("data parallel", "Megatron over model"):
        others = search.plan_of(known[name]).others
        assert all(each and each[0].op for each in others[:2]), name


def test_a_plan_whose_sum_is_not_the_least_comes_back_from_its_file(found: AutoPlan, tmp_path: Path) -> None:
    cheaper = replace(found.others[0][0], seconds=-1e-9)
    given = replace(found, others=((cheaper,), *found.others[1:]))
    (tmp_path / "plan.json").write_text(given.text)
    assert AutoPlan.read(tmp_path / "plan.json") == given
    assert "-0.001 us" in why_text(given, given.arguments[0].name)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (1.0, ()),
        (0.899, ()),
        (0.0, ()),
        (1.7, ("1.7 times as long",)),
        (0.8, ("0.80 times as long", "the bound is of the sum only")),
    ],
)
def test_a_sum_that_misjudges_the_time_says_so(seconds: float, said: tuple[str, ...]) -> None:
    text = plan_text(AutoPlan("data=8", "h100", seconds, 0, 1.0, 0.9, (), (), {}))
    assert all(words in text for words in said)
    assert ("misjudges" in text) == bool(said)


@pytest.mark.parametrize(
    "meshes",
    [("data=2,model=4", "data=4,model=2"), ("data=2,model=4,seq=2", "data=2,model=2,seq=4")],
)
def test_meshes_of_equal_links_are_searched_once(meshes: tuple[str, str]) -> None:
    def links(mesh: str, topology: str) -> object:
        return Search(_text(), mesh, AutoOptions(topology=topology), lambda stage, done: None).links

    first, second = (links(mesh, "v5e") for mesh in meshes)
    assert first == second
    in_rows = [links(mesh, "v5e:2x4" if len(mesh) < 20 else "v5e:4x4") for mesh in meshes]
    assert in_rows[0] != in_rows[1]


def test_a_plan_needs_no_more_memory_than_a_known_strategy_that_is_as_fast() -> None:
    def costed(name: str, seconds: float, peak: int, opened: bool) -> Any:
        cost = SimpleNamespace(seconds=seconds, peak=peak)
        return None, SimpleNamespace(name=name, cost=cost, opened=opened or None)

    fast, small = costed("fast", 1.0, 104, True), costed("small", 1.003, 100, True)
    known, slow = costed("known", 1.004, 101, False), costed("slow", 1.1, 50, False)
    for plans, best in (([fast, slow], fast), ([fast, known], known), ([fast, small, known], small)):
        assert _best(plans) == best


@pytest.mark.parametrize("mesh", ["data=8", "data=2,model=4", "data=4,model=2"])
def test_a_mesh_is_left_out_by_a_bound_that_its_sum_is_not_below(mesh: str) -> None:
    looked = Search(_text(), mesh, AutoOptions(topology="v5e"), lambda what, done: None)
    bound = looked.look(0.0)
    assert 0 < bound <= looked.sum
    assert looked.look(2 * looked.sum) == looked.sum


@pytest.mark.parametrize("keep", [(), ("batch[0]=data",)])
def test_a_program_that_was_read_for_another_mesh_has_the_same_search(keep: tuple[str, ...]) -> None:
    options = AutoOptions(topology="v5e", keep=keep)

    def searched(mesh: str, like: Search | None = None) -> Search:
        return Search(_text(), mesh, options, lambda what, done: None, like=like)

    planning._KEPT.clear()  # what other tests have decided
    alone = searched("data=2,model=4")
    expected = alone.opened(TRIFLE), alone.bound
    planning._KEPT.clear()
    first = searched("data=4,model=2")
    assert first.look(0.0) > 0
    second = searched("data=2,model=4", first)
    assert first.names_axes == bool(keep) and (second.base is first.base) == (not keep)
    assert (second.opened(TRIFLE), second.bound) == expected


@pytest.mark.parametrize(
    ("kind", "keep"), [("tensor<f32>", ()), ("tensor<8x16xf32>", ("arg0=data", "arg1=-,data"))]
)
def test_programs_with_nothing_to_choose_have_plans(kind: str, keep: tuple[str, ...]) -> None:
    text = f"""func.func @main(%x: {kind}, %y: {kind}) -> ({kind}, {kind}) {{
  return %x, %x : {kind}, {kind}
}}
"""
    assert plan(text, AutoOptions(devices=6, keep=keep)).sum == 0


def test_axes_that_no_mesh_has_are_refused_by_the_mesh_of_most_axes() -> None:
    with pytest.raises(ShardlogError, match="has no axis nosuch") as refused:
        plan(_text(), AutoOptions(devices=4, keep=("batch[0]=nosuch",)))
    assert refused.value.hint == "there are: data, model"


def test_mutation_is_never_worse(found: AutoPlan) -> None:
    options = AutoOptions(mesh="data=4,model=2", topology="h100", method="mutate", compare=False)
    chosen = [tried.seconds for tried in found.tried if tried.name.startswith("memory")]
    mutated = plan(_text(), options)
    assert mutated.seconds <= 1.005 * min(chosen)
    for argument, others in zip(mutated.arguments, mutated.others, strict=True):
        assert argument.spec not in [other.spec for other in others]


def test_why_plan_says_what_comes_next_and_what_it_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = AutoOptions(mesh="data=4,model=2", topology="h100", compare=False)
    path = tmp_path / "plan.json"
    path.write_text(plan(_text(), options).text)
    assert main(["why-plan", "params[0]", str(path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("params[0] has P(")
    assert any("stablehlo." in line or "func.return" in line for line in said[1:])
    assert main(["why-plan", "params[9]", str(path)]) == 2
    assert "the plan has no argument params[9]" in capsys.readouterr().err
    whole = json.loads(path.read_text())
    worse: list[dict[str, Any]] = [
        {},
        whole | {"others": [[{"spec": [], "seconds": "x", "op": "", "where": ""}]]},
        whole | {"arguments": [{"name": "params[0]", "spec": "data"}]},
        whole | {"seconds": float("nan")},
        whole | {"sum": float("inf")},
        whole | {"peak": -1},
    ]
    for document in worse:
        path.write_text(json.dumps(document))
        assert main(["why-plan", "params[0]", str(path)]) == 2
        assert "not a plan" in capsys.readouterr().err


def test_a_plan_is_no_plan_of_partition(
    found: AutoPlan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.mlir").write_text(_text())
    (tmp_path / "plan.json").write_text(found.text)
    assert main(["partition", str(tmp_path / "m.mlir"), "--plan", str(tmp_path / "plan.json")]) == 2
    assert "shardlog auto MODULE --program OUT" in capsys.readouterr().err


def test_the_summary_has_straight_columns_and_ranges_of_numbers() -> None:
    names = [*(f"arg{n}" for n in (9, 10, 11, 13)), "p['w2*'][0]", *(f"p['up'][{n}]['w']" for n in range(12))]
    placed = tuple(Placed(name, ("data",)) for name in names)
    tried = Tried("Megatron and ZeRO-3 over data", "data=8", 0.012, 1 << 30), Tried("mutated", "data=8", 1, 0)
    lines = plan_text(AutoPlan("data=8", "h100", 1, 0, 1, 1, placed, (), {}, tried=tried)).splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("plan "))
    assert [
        line.index(word) for line, word in zip(lines[begin:], ("mesh", "data=8", "data=8"), strict=False)
    ] == [lines[begin].index("mesh")] * 3
    assert [line.split("  ")[0].split()[1] for line in lines[begin + 4 :]] == [
        "arg9-11,13",
        "p['w2*'][0]",
        "p['up'][0-11]['w']",
    ]
