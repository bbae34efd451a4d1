"""Which Shardy is meant: by default that of the installed jaxlib, or the one that is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import shardlog
from jaxlib.version import __version__
from shardlog.cli import main
from shardlog.errors import ShardlogError
from shardlog.program.shardy import LINES, installed, line_of
from shardlog.rulebook.book import RuleBook

from ..support.compare import differences
from ..support.oracle import OracleError, forked, propagate, run_passes

pytestmark = pytest.mark.versions

RESHAPE = """
sdy.mesh @mesh = <["x"=5]>
func.func @main(%a: tensor<5x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<7x5xf32> {
  %0 = stablehlo.reshape %a : (tensor<5x7xf32>) -> tensor<7x5xf32>
  %1 = stablehlo.tanh %0 : tensor<7x5xf32>
  return %1 : tensor<7x5xf32>
}
"""


@pytest.mark.parametrize(
    ("version", "line"), [("0.10.2", "0.10"), ("0.11", "0.11"), ("0.12.0.1", "0.12"), ("0.12.1.dev3", "0.12")]
)
def test_known_versions(version: str, line: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert line_of(version) == line


@pytest.mark.parametrize(
    ("version", "line"), [("0.13.0", "0.12"), ("1.0", "0.12"), ("0.9.2", "0.10"), ("unknown", "0.10")]
)
def test_unknown_versions(version: str, line: str) -> None:
    with pytest.warns(UserWarning, match=rf"jaxlib {version} is not known.*install jaxlib 0.10 to 0.12"):
        assert line_of(version) == line


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if jaxlib were of a line that is not known."""
    monkeypatch.setattr("jaxlib.version.__version__", "0.13.0")
    installed.cache_clear()
    yield
    installed.cache_clear()


@pytest.mark.usefixtures("unknown")
def test_an_unknown_line_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module, rules = tmp_path / "reshape.mlir", tmp_path / "mine.dl"
    module.write_text(RESHAPE)
    rules.write_text('elementwise_op("mine.op").\n')
    assert main(["fmt", "--check", str(rules)]) == 0
    assert main(["run", str(module), "--shardy", "0.12", "-o", str(tmp_path / "out.mlir")]) == 0
    assert capsys.readouterr().err == ""
    assert main(["why", str(module), "%0", "--rules", str(rules)]) == 0
    assert capsys.readouterr().err.count("the Shardy of jaxlib 0.13.0 is not known") == 1


@pytest.mark.usefixtures("unknown")
def test_an_unknown_line_is_told_once_in_python() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(2):
            shardlog.run(RESHAPE).why("%0")
    assert len(told) == 1


def test_without_jaxlib(tmp_path: Path) -> None:
    """What needs it says so; what does not goes on."""
    (tmp_path / "jaxlib").mkdir()
    missing = "raise ModuleNotFoundError(\"No module named 'jaxlib'\", name='jaxlib')"
    (tmp_path / "jaxlib" / "__init__.py").write_text(missing)
    (tmp_path / "reshape.mlir").write_text(RESHAPE)
    (tmp_path / "two.dl").write_text(".decl p(x: number)\n.output p\np(2).\n")
    shardlog.run(RESHAPE).save(tmp_path / "saved.run")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}

    def ended(*command: str) -> tuple[int, str]:
        arguments = [sys.executable, "-m", "shardlog", *command]
        done = subprocess.run(
            arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    status, said = ended("datalog", "two.dl", "-D", "-")
    assert (status, "2" in said.splitlines()) == (0, True)
    status, said = ended("why", "saved.run", "%0")
    assert (status, "tensor<7x5xf32>" in said) == (0, True)
    status, said = ended("query", "saved.run", "value(v, t)")
    assert (status, "%0" in said) == (0, True)
    assert ended("diff", "saved.run", "saved.run") == (0, "0 of 4 tensors are sharded otherwise\n")
    for command in (("run", "reshape.mlir"), ("conflicts", "saved.run")):
        status, said = ended(*command)
        assert (status, "Traceback" in said) == (2, False)
        assert "jaxlib cannot be used: No module named 'jaxlib'" in said
        assert "install jaxlib 0.10 to 0.12" in said


def test_the_installed_one_is_meant() -> None:
    assert __version__.startswith(installed())
    result = shardlog.run(RESHAPE)
    assert result.result.options.shardy == installed()
    assert result.text() == shardlog.run(RESHAPE, shardy=installed()).text()


def test_the_rules_know_all_lines() -> None:
    for i, line in enumerate(LINES):
        since = RuleBook(shardy=line).ops.solver({"shardy_version": [(line,)]}).solve({}, ["since"])["since"]
        assert sorted(since) == [(earlier,) for earlier in LINES[: i + 1]]


@pytest.mark.parametrize(("shardy", "sharded"), [("0.10", False), ("0.11", False), ("0.12", True)])
def test_a_line_that_is_asked_for(shardy: str, sharded: bool) -> None:
    why = shardlog.run(RESHAPE, shardy=shardy).why("%1", axis="x")
    assert bool(why) == sharded


RETURNED = """
sdy.mesh @mesh = <["x"=2]>
sdy.mesh @one = <[], device_ids=[0]>
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.tanh %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<4xf32>
  %1 = stablehlo.tanh %b {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<4xf32>
  %2 = stablehlo.tanh %c : tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
"""


@pytest.mark.parametrize("shardy", LINES)
def test_replicated_results(shardy: str) -> None:
    """Since 0.11 a result that no axes come to has the sharding of the returned value, but for one device."""
    ours = shardlog.run(RETURNED, shardy=shardy).text()
    results = ours.partition("->")[2].partition("\n")[0]
    replicated = "{sdy.sharding = #sdy.sharding<@mesh, [{}]>}"
    first = "tensor<4xf32>" if shardy == "0.10" else f"tensor<4xf32> {replicated}"
    assert results == f" ({first}, tensor<4xf32>, tensor<4xf32>) {{"
    if shardy == installed():
        assert differences(ours, forked(propagate, RETURNED)) == []


# What is decided otherwise since a line of Shardy.
CHANGED = {
    "an open sharding says nothing that a constraint respects": (
        "0.12",
        """
        %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"a", ?}]>] out_shardings=[<@mesh, [{"a", ?}]>]
            manual_axes={"a"} (%arg1: tensor<4xf32>, %arg2: tensor<4xf32>) {
          %2 = sdy.sharding_constraint %arg2 <@mesh, [{"b"}]> : tensor<4xf32>
          %3 = sdy.sharding_constraint %arg1 <@mesh, [{}]> : tensor<4xf32>
          %4 = stablehlo.add %arg1, %arg2 : tensor<4xf32>
          sdy.return %4 : tensor<4xf32>
        } : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
        return %1 : tensor<8xf32>""".replace(
            "(%0) in_shardings=[", '(%0, %0) in_shardings=[<@mesh, [{"a", ?}]>, '
        ),
    ),
    "constraints are applied before functions come in the place of their calls": (
        "0.12",
        """
        %1 = call @f(%0, %0) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
        %2 = sdy.sharding_constraint %0 <@mesh, [{"b", "a"}]> : tensor<8xf32>
        %3 = sdy.sharding_constraint %0 <@mesh, [{"a"}]> : tensor<8xf32>
        return %3 : tensor<8xf32>
      }
      func.func private @f(%0: tensor<8xf32>, %1: tensor<8xf32>) -> tensor<8xf32> {
        %2 = sdy.sharding_constraint %0 <@mesh, [{"b", "a"}]> : tensor<8xf32>
        %3 = stablehlo.tanh %2
            {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", "b"}]>]>} : tensor<8xf32>
        %4 = sdy.sharding_constraint %1 <@mesh, [{"a", "b"}]> : tensor<8xf32>
        %5 = stablehlo.add %3, %1 : tensor<8xf32>
        return %5 : tensor<8xf32>""",
    ),
    "a function that nothing calls is as one that is called": (
        "0.12",
        """
        return %0 : tensor<8xf32>
      }
      func.func public @other(%0: tensor<8xf32>) -> tensor<8xf32> {
        %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}]> : tensor<8xf32>
        return %0 : tensor<8xf32>""",
    ),
    "what is on one device is no result": (
        "0.11",
        """
        %1 = call @on_one(%0) : (tensor<8xf32>) -> tensor<8xf32>
        return %0 : tensor<8xf32>
      }
      func.func private @on_one(%0: tensor<8xf32>) -> tensor<8xf32> {
        %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<8xf32>
        return %1 : tensor<8xf32>
      }
      func.func public @other(%0: tensor<8xf32>) -> tensor<8xf32> {
        %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<8xf32>
        return %1 : tensor<8xf32>""",
    ),
    "unreduced axes make a difference after a call": (
        "0.11 0.12",
        """
        %1 = call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}], unreduced={"a"}>]>}
            : (tensor<8xf32>) -> tensor<8xf32>
        return %1 : tensor<8xf32>
      }
      func.func private @f(%0: tensor<8xf32>) -> tensor<8xf32> {
        %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>} : tensor<8xf32>
        return %1 : tensor<8xf32>""",
    ),
}


@pytest.mark.parametrize(("since", "body"), CHANGED.values(), ids=CHANGED)
def test_what_changed(since: str, body: str) -> None:
    text = f"""
      sdy.mesh @mesh = <["a"=2, "b"=2]>
      sdy.mesh @one = <[], device_ids=[0]>
      func.func public @main(%0: tensor<8xf32>) -> tensor<8xf32> {{{body}
      }}"""
    ours = list(map(decided, [text] * len(LINES), LINES))
    assert [LINES[i + 1] for i, (one, two) in enumerate(pairwise(ours)) if one != two] == since.split()
    own = ours[LINES.index(installed())]
    assert not own.startswith("module") or differences(own, forked(propagate, text)) == []


_ONE_DEVICE = "{sdy.sharding = #sdy.sharding<@one, []>}"
_ON_ONE_DEVICE = "{sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>}"


@pytest.mark.parametrize(
    ("argument", "result", "body", "refused"),
    [
        (_ONE_DEVICE, "", "", "argument 0"),
        ("", _ONE_DEVICE, "", "result 0"),
        ("", "", "%1 = sdy.sharding_constraint %0 <@one, []> : tensor<8xf32>", "argument 0"),
        ("", "", f"%1 = stablehlo.negate %0 {_ON_ONE_DEVICE} : tensor<8xf32>", ""),
    ],
    ids=["argument", "result", "constraint", "op"],
)
@pytest.mark.parametrize("shardy", LINES)
def test_single_devices_at_the_boundary(
    shardy: str, argument: str, result: str, body: str, refused: str
) -> None:
    text = f"""
      sdy.mesh @one = <[], device_ids=[1]>
      func.func @main(%0: tensor<8xf32> {argument}) -> (tensor<8xf32> {result}) {{
        {body}
        return %0 : tensor<8xf32>
      }}"""
    expected = f"{refused} of @main has a sharding on a single device" if refused and shardy != "0.10" else ""
    ours = decided(text, shardy)
    assert ours == expected if expected else ours.startswith("module")
    if shardy == installed():
        try:
            forked(run_passes, text, "sdy-propagation-pipeline")
        except OracleError as error:
            assert expected and "single-device" in str(error)
        else:
            assert not expected


def decided(text: str, line: str) -> str:
    """The annotated module, or why it is refused."""
    try:
        return shardlog.run(text, shardy=line).text()
    except shardlog.ShardlogError as error:
        return error.message


@pytest.mark.parametrize("shardy", LINES)
def test_programs_are_right_by_every_line(shardy: str) -> None:
    """What Shardy says a reshape has in common is no way to compute it in parts."""
    bodies = [
        shardlog.run(RESHAPE, shardy=line).partition().text().partition("sdy.manual_computation")[2]
        for line in (LINES[0], shardy)
    ]
    assert bodies[1] == bodies[0] and "all_gather" in bodies[0]


def test_a_saved_run_keeps_its_line(tmp_path: Path) -> None:
    run = shardlog.run(RESHAPE, shardy="0.12")
    run.save(tmp_path / "saved")
    assert shardlog.open(tmp_path / "saved").text() == run.text()


def test_an_unknown_line() -> None:
    with pytest.raises(ShardlogError, match=r"there is no Shardy '0\.13'") as error:
        shardlog.run(RESHAPE, shardy="0.13")
    assert "0.10, 0.11, 0.12" in str(error.value)
