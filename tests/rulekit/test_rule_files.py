"""The powers of rule files: they run under limits, and include files of their own folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import shardlog
from shardlog import cli
from shardlog.engine import EngineError
from shardlog.rulekit.check.check import check_rules

MODULE = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @mine(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
ENDLESS = """
.decl n(s:sig, i:number)
n(s, 0) :- target(s, "mine").
n(s, i + 1) :- n(s, i).
known(s) :- n(s, 5).
"""
FACTS = "".join(f'pointwise_target("mine{i}").\n' for i in range(20_000))


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.mlir"
    path.write_text(MODULE)
    return path


def rules(folder: Path, text: str) -> Path:
    path = folder / "rules.dl"
    path.write_text(text)
    return path


def test_rules_run_under_limits(module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also without a word about them; the error says which rule made how many tuples."""
    file = rules(tmp_path, ENDLESS)
    with pytest.raises(EngineError, match=r"rules\.dl:4: more than 1000000 tuples"):
        shardlog.run(module, rules=[file])
    command = ["run", str(module), "--rules", str(file), "--limits", "tuples=5000"]
    assert cli.main(command) == 2
    error = capsys.readouterr().err
    assert f"{file}:4: error: more than 5000 tuples; bound the recursion, or raise the limit\n" in error
    assert f"\n  4996 tuples by {file}:4\n" in error
    assert cli.main([*command[:-1], "tuples=many"]) == 2
    assert "cannot read the limit 'tuples=many'; as in tuples=1000000" in capsys.readouterr().err


def test_a_query_runs_under_limits(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for query in ("x = range(0, 1000000000000)", "op(a, b), y = range(0, 1000000), x = range(0, 1000000)"):
        assert cli.main(["query", str(module), query, "--limits", "tuples=5000"]) == 2
        assert "\nquery:1: error: more than 5000 tuples" in capsys.readouterr().err


def test_an_include_from_elsewhere_is_allowed_by_a_flag(
    module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("mine", "shared"):
        (tmp_path / name).mkdir()
    (tmp_path / "shared" / "more.dl").write_text('pointwise_target("mine").\n')
    file = rules(tmp_path / "mine", '.include "../shared/more.dl"\n')
    command = ["run", str(module), "--rules", str(file)]
    assert cli.main(command) == 2
    assert f"hint: if it may be included, allow its folder: {tmp_path}/shared" in capsys.readouterr().err
    assert cli.main([*command, "--allow-include", str(tmp_path / "shared")]) == 0
    result = shardlog.run(module, rules=[file], include_from=[tmp_path / "shared"])
    assert not result.unknown_ops
    assert check_rules([file], [module], include_from=[tmp_path / "shared"]).cases == 1


def test_rules_may_include_those_of_shardlog(module: Path, tmp_path: Path) -> None:
    known = Path(shardlog.__file__).parent / "rules" / "ops" / "factors.dl"
    file = rules(tmp_path, f'.include "{known}"\npointwise_target("mine").\n')
    assert not shardlog.run(module, rules=[file]).unknown_ops


def test_many_facts(module: Path, tmp_path: Path) -> None:
    facts = FACTS.replace('"mine7"', '"mine"')
    assert not shardlog.run(module, rules=[rules(tmp_path, facts)]).unknown_ops


def test_rule_files_that_do_not_end(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", str(module), "--rules", "/dev/zero"]) == 2
    assert "/dev/zero:1:1: error[E0106]: cannot read this file: it is larger than" in capsys.readouterr().err
