"""Lists of op priorities: the order in which ops propagate, from a file or from facts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import shardlog
from hypothesis import given, note
from hypothesis import strategies as st
from shardlog import cli

from ..support import models
from ..support.compare import differences
from ..support.drawing import drawing
from ..support.generators.random_modules import modules

DOCS = Path(__file__).parents[2] / "docs"
SHARDY = re.findall(r"^```text shardy.txt\n(.*?)^```$", (DOCS / "op_priorities.md").read_text(), re.S | re.M)[
    0
]

# A product whose rows are sharded, and an addition of a tensor whose columns are: only one can have the axis.
RIVALS = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>},
                %w: tensor<16x32xf32>,
                %bias: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}]>})
    -> tensor<8x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = stablehlo.add %0, %bias : tensor<8x32xf32>
  return %1 : tensor<8x32xf32>
}
"""
COLUMNS, ROWS = "[{}, {x}]", "[{x}, {}]"

Listed = Callable[..., shardlog.Session]


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Listed:
    """Runs a module with a list of op priorities."""
    path = tmp_path_factory.mktemp("lists") / "list.txt"

    def run(text: str, order: str, **options: object) -> shardlog.Session:
        path.write_text(order)
        return shardlog.run(text, op_priorities=path, **options)  # type: ignore[arg-type]

    return run


def sharding(result: shardlog.Session, value: str) -> str:
    """The dimensions of a value's sharding, such as "[{x}, {}]"."""
    axes = [x for v, _, _, x in result.facts["sharded"] if v == value]
    dims = {d: [x for v, e, _, x in result.facts["sharded"] if (v, e) == (value, d)] for d in (0, 1)}
    assert len(axes) == sum(map(len, dims.values()))
    return f"[{', '.join('{' + ', '.join(found) + '}' for found in dims.values())}]"


# ---- Shardy's list -----------------------------------------------------------------------------------------


def assert_same(found: shardlog.Session, expected: shardlog.Session) -> None:
    assert differences(found.text(), expected.text()) == []
    stages = [(s.priority, s.level, s.turns, s.changes) for s in found.stages]
    assert stages == [(s.priority, s.level, s.turns, s.changes) for s in expected.stages]


@pytest.mark.parametrize("name", models.MODELS)
def test_shardys_list_is_the_default_on_models(name: str, listed: Listed) -> None:
    text = models.text(name, train=name != "decode")
    assert_same(listed(text, SHARDY), shardlog.run(text))


@drawing(8)
@given(text=modules(), strategy=st.sampled_from(["user-priority", "op-priority"]))
def test_shardys_list_is_the_default_on_random_modules(text: str, strategy: str, listed: Listed) -> None:
    note(text)
    assert_same(listed(text, SHARDY, strategy=strategy), shardlog.run(text, strategy=strategy))


# Data flows into what the computation takes: reading adds a constraint before it, no op of the module.
CONSTRAINED = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<8x8xf32>, %i: tensor<i32>) -> tensor<8x8xf32> {
  %0:2 = stablehlo.while(%n = %i, %y = %x) : tensor<i32>, tensor<8x8xf32> cond {
    %1 = stablehlo.compare LT, %n, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    stablehlo.return %n, %y : tensor<i32>, tensor<8x8xf32>
  }
  %2 = sdy.manual_computation(%0#1) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
      manual_axes={"x"} (%y: tensor<2x8xf32>) {
    sdy.return %y : tensor<2x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
"""


def test_constraints_that_reading_adds(listed: Listed) -> None:
    assert_same(listed(CONSTRAINED, SHARDY), shardlog.run(CONSTRAINED))


# ---- What a list says --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (SHARDY, COLUMNS),
        ("stablehlo.dot_general: forward\n*: both", ROWS),
        ("stablehlo.dot_general: both\n", ROWS),  # what is not listed comes last, with the last level
        ("stablehlo.dot_general: backward\nelementwise: both\n*: both", COLUMNS),
        ("stablehlo.add: both\n*: both", COLUMNS),
        ("*: both", ROWS),  # all at once: in the order of the program
        ("stablehlo.dot_general: none; *: both\n*: both", COLUMNS),
        ("*: both; stablehlo.dot_general: none\n*: both", ROWS),  # the first that is about an op decides
        ("stablehlo.dot*: both\n*: both", ROWS),
        ("elementwise: both\n*: both", COLUMNS),
        ("* pass_through: both\n*: both", ROWS),
        ("* reduction: both\nelementwise: both\n*: both", COLUMNS),
        ("stablehlo.add,\n  // all that goes on\n  stablehlo.dot_general: both\n*: both", ROWS),
    ],
)
def test_the_order_decides_who_gets_an_axis(order: str, expected: str, listed: Listed) -> None:
    assert sharding(listed(RIVALS, order), "%1") == expected


def test_a_direction_that_no_level_allows_is_never_taken(listed: Listed) -> None:
    text = RIVALS.replace('[{"x"}, {?}]', "[{?}, {?}]")
    assert sharding(listed(text, "stablehlo.dot_general: both"), "%arg1") == COLUMNS
    assert sharding(listed(text, "stablehlo.dot_general: forward\nelementwise: both"), "%arg1") == "[{}, {}]"
    assert (
        sharding(listed(text, "stablehlo.dot_general: forward\nelementwise: both; *: backward"), "%arg1")
        == COLUMNS
    )
    assert sharding(listed(text, "stablehlo.dot_general: none\n"), "%0") == COLUMNS


def test_factors_that_no_level_speaks_of_have_the_last(listed: Listed) -> None:
    text = RIVALS.replace(
        "%w: tensor<16x32xf32>", '%w: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}'
    )
    text = text.replace(
        '%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}', "%x: tensor<8x16xf32>"
    )
    for order in (
        "stablehlo.dot_general pass_through: none",
        "stablehlo.dot_general: none\n* reduction: both",
    ):
        assert sharding(listed(text, order), "%arg0") == "[{}, {x}]"


def test_single_use_is_about_ops_whose_operands_have_no_other(listed: Listed) -> None:
    """The product first, but not where one of its operands is used again."""
    order = "stablehlo.dot_general single_use: forward\nelementwise: both\n*: both"
    assert sharding(listed(RIVALS, order), "%1") == ROWS
    again = RIVALS.replace("  return", "  %2 = stablehlo.tanh %w : tensor<16x32xf32>\n  return")
    again = again.replace("-> tensor<8x32xf32> {", "-> (tensor<8x32xf32>, tensor<16x32xf32>) {")
    again = again.replace("%1 : tensor<8x32xf32>\n}", "%1, %2 : tensor<8x32xf32>, tensor<16x32xf32>\n}")
    assert sharding(listed(again, order), "%1") == COLUMNS


def test_custom_calls_and_other_dialects(listed: Listed, tmp_path: Path) -> None:
    product = re.search(r"stablehlo.dot_general (%\w+, %\w+), .*\[0\]", RIVALS)
    assert product is not None
    rules = tmp_path / "my.rules"
    rules.write_text("my.product: i k, k j -> i j reduction={k}\n@product: i k, k j -> i j reduction={k}\n")
    for name, op in (
        ("my.*", '"my.product"'),
        ("@prod*", "stablehlo.custom_call @product"),
        ("@product", "stablehlo.custom_call @product"),
    ):
        text = RIVALS.replace(product[0], f"{op}({product[1]})")
        assert sharding(listed(text, f"{name}: both\n*: both", rules=[rules]), "%1") == ROWS
        assert sharding(listed(text, SHARDY, rules=[rules]), "%1") == COLUMNS


def test_stages_are_the_levels(listed: Listed) -> None:
    priorities = RIVALS.replace('[{?}, {"x"}]', '[{?}, {"x"}p3]')
    result = listed(priorities, "stablehlo.add: both\nstablehlo.dot_general: both\n*: both")
    assert [(s.priority, s.level) for s in result.stages] == [
        (p, level) for p in (0, 3) for level in range(3)
    ]
    assert sharding(result, "%1") == ROWS


def test_a_list_is_of_one_run(listed: Listed) -> None:
    for _ in range(2):
        assert sharding(listed(RIVALS, "stablehlo.dot_general: both"), "%1") == ROWS
        assert sharding(shardlog.run(RIVALS), "%1") == COLUMNS


# ---- Facts -------------------------------------------------------------------------------------------------


def test_facts_in_rules_are_a_list_and_a_file_goes_before_them(listed: Listed, tmp_path: Path) -> None:
    rules = tmp_path / "order.dl"
    rules.write_text(
        'op_priority(2, 0, "stablehlo.dot_general", "any", "any", "forward").\n'
        'op_priority(7, 0, "*", "any", "any", "both").\n'
    )
    result = shardlog.run(RIVALS, rules=[rules])
    assert sharding(result, "%1") == ROWS
    assert [s.level for s in result.stages] == [2, 7]
    assert sharding(listed(RIVALS, SHARDY, rules=[rules]), "%1") == COLUMNS


# ---- The command line --------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the program in `m.mlir`."""
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(RIVALS)
    return tmp_path


def run(order: str, *more: str) -> int:
    Path("order").write_text(order)
    return cli.main(["run", "m.mlir", "-o", "out.mlir", "--op-priorities", "order", *more])


def test_stats_show_the_levels(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("stablehlo.dot_general: forward\n*: both", "--stats") == 0
    rows = [line.split()[:3] for line in capsys.readouterr().out.splitlines()[2:-1]]
    assert rows == [["0", "0", "aggressive"], ["0", "1", "aggressive"]]


def test_saved_runs_keep_the_list(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("stablehlo.dot_general: forward\n*: both", "--save", "m.run") == 0
    assert cli.main(["why", "m.run", "%1"]) == 0
    assert "op priority 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("order", "message", "hint"),
    [
        ("stablehlo.add: foward", "order:1:16: error: unknown direction foward", "did you mean forward?"),
        ("// none\n", "order: error: there are no levels", "*: both"),
        (": both", "order:1:1: error: expected ops", "name ops"),
        ("*: both;", "order:1:9: error: expected ops", "name ops"),
        ("a.b, : both", "order:1:6: error: expected ops", "name ops"),
        (
            "*: both\nstablehlo.add\n",
            "order:2:14: error: expected : and a direction, found the end",
            ": both",
        ),
        (
            "a.b:\n*: both",
            "order:1:5: error: expected a direction",
            "there are: forward, backward, both, none",
        ),
        ("elementwize: both", "order:1:1: error: unknown family elementwize", "did you mean elementwise?"),
        ("add: both", "order:1:1: error: unknown family add", "ops have a dot: dialect.op"),
        (
            "a.b passthrough: both",
            "order:1:5: error: expected a kind of factors",
            "did you mean pass_through?",
        ),
        (
            "a.b: both c.d: both",
            "order:1:11: error: expected ; or the end of the level",
            "stablehlo.add: both; my.*: forward",
        ),
        ("a.b & c.d: both", "order:1:5: error: unexpected character '&'", "@target"),
        ("  a.b: both", "order:1:3: error: this line has no level to continue", "first column"),
    ],
)
def test_bad_lists(
    order: str, message: str, hint: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(order) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(message)
    assert second.startswith("  hint: ") and hint in second
    assert not Path("out.mlir").exists()


def test_a_list_that_cannot_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "m.mlir", "--op-priorities", "missing"]) == 2
    assert capsys.readouterr().err.startswith("missing: error: cannot read this file: No such file")


def test_strategies_without_levels_have_no_list(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("*: both", "--strategy", "basic") == 2
    assert "the strategy 'basic' has no op priorities" in capsys.readouterr().err


def test_names_that_nobody_knows_are_a_warning(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("stablehlo.dot_generl", "my.*", "@my_call")
    assert run(f"{', '.join(names)}, stablehlo.fft, @MoveToHost, stablehlo.dyn*: both\n*: both") == 0
    dot, beginning, call = capsys.readouterr().err.splitlines()
    about = "no op in the module or in the rules"
    assert dot.endswith(f"order:1:1: {about} is called {names[0]}; did you mean stablehlo.dot_general?")
    assert beginning.endswith(f"order:1:23: {about} begins with my.")
    assert call.endswith(f"order:1:29: {about} is called @my_call")
