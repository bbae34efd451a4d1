"""The command line's view of rules: of an op, of the ops of a module, and of all ops in the documents."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from shardlog.cli import main
from shardlog.rulekit.case import Case
from shardlog.rulekit.catalogue import _file, catalogue, changes
from shardlog.rulekit.origin import Origins

from ..support.drawing import by_day

DOCS = Path(__file__).parents[2] / "docs"
MODULE = """
func.func @f(%a: tensor<8x4xf32>, %b: tensor<4x2xf32>) {
  %0 = stablehlo.dot %a, %b : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %1 = "mine.op"(%0) : (tensor<8x2xf32>) -> tensor<8x2xf32>
  %2 = stablehlo.custom_call @kernel(%1) : (tensor<8x2xf32>) -> tensor<8x2xf32>
  return
}
"""


@pytest.mark.parametrize("step", by_day([12], [12, 1]))
def test_the_table_of_ops_is_fresh(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By day the file of a rule is looked up for one op of twelve."""
    table = (DOCS / "ops.md").read_text()
    listed = iter(enumerate(re.findall(r"^\| \S+ \| (\[\S+\]\(\S+\)) \|", table, re.MULTILINE)))
    looked_up: list[Case] = []

    def file(case: Case, origins: Origins) -> str:
        number, known = next(listed, (0, ""))
        if number % step:
            return str(known)
        looked_up.append(case)
        return _file(case, origins)

    monkeypatch.setattr("shardlog.rulekit.catalogue._file", file)
    hint = "run: python -m shardlog.rulekit.catalogue > docs/ops.md"
    assert table == catalogue(), hint
    assert len(looked_up) > 400 // step


def test_the_list_of_what_changed_is_fresh() -> None:
    hint = "run: python -c 'from shardlog.rulekit.catalogue import changes; print(changes())'"
    assert changes() in (DOCS / "propagation.md").read_text(), hint


def test_rules_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "show", "stablehlo.transpose"]) == 0
    shown = capsys.readouterr().out
    assert "rules/ops/stablehlo/shape.dl:" in shown
    assert (
        'along(s, i, 0, d) :- op(s, "stablehlo.transpose"), attribute_item(s, "permutation", i, d).' in shown
    )
    assert "stablehlo.transpose %arg0, dims = [" in shown
    *_, factors, iterators, operand, result = shown.splitlines()
    assert factors.strip().endswith("{i=5, j=2, k=3}")
    assert iterators == "  iterators [parallel, parallel, parallel]"
    assert operand == "   operand 0  (d0, d1, d2) -> (d1, d2, d0)"
    assert result == "    result 0  (d0, d1, d2) -> (d0, d1, d2)"


@pytest.mark.parametrize(
    ("name", "maps"),
    [
        ("tosa.matmul", ["(d0, d1, d3)", "(d0, d3, d2)", "(0)", "(0)", "(d0, d1, d2)"]),
        ("linalg.conv_1d_nwc_wcf", ["(d0, d1 + d4, d3)", "(d4, d3, d2)", "(d0, d1, d2)", "(d0, d1, d2)"]),
        ("tensor.collapse_shape", ["(d0, d1, d2)", "(d0, d1 * 6 + d2)"]),
    ],
)
def test_rules_show_maps(name: str, maps: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "show", name]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^ +(?:operand|result) \d+ +\(.*\) -> (.*)$", shown, re.M) == maps


def test_rules_show_sentences_of_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "show", "stablehlo.dot_general"]) == 0
    assert "Dimension 3 of lhs is contracted." in capsys.readouterr().out


def test_rules_show_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "mine.rules"
    rules.write_text("/// Every row is scaled.\n@scale: i j, i -> i j\n")
    assert main(["rules", "show", "@scale", "--rules", str(rules)]) == 0
    shown = capsys.readouterr().out
    assert f"{rules}:2\n    @scale: i j, i -> i j\n      Every row is scaled.\n" in shown
    assert "([i, j], [i])->([i, j]) {i=4, j=4}\n" in shown


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("stablehlo.tuple", "no rule: tuples are not sharded"),
        ("stablehlo.iota", "needs no rule: a constant is sharded as its use asks"),
        ("stablehlo.while", "data flow: operand 0 and return 0 of region 1 -> result 0"),
    ],
)
def test_rules_show_ops_without_factors(name: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "show", name]) == 0
    assert expected in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("stablehlo.transpos", "did you mean stablehlo.transpose?"),
        ("transpose", "did you mean linalg.transpose, stablehlo.transpose or tosa.transpose?"),
        ("Qr", "did you mean @Qr?"),
        ("mine.oop", "did you mean mine.op?"),
        ("nothing.alike", "docs/ops.md lists the ops that have one"),
    ],
)
def test_rules_show_what_is_not_there(
    name: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "mine.dl"
    rules.write_text('elementwise_op("mine.op").\n')
    assert main(["rules", "show", name, "--rules", str(rules)]) == 2
    assert capsys.readouterr().err == f"shardlog: error: there is no rule for {name!r}\n  hint: {hint}\n"


def test_rules_show_an_op_of_a_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, module = tmp_path / "mine.dl", tmp_path / "mine.mlir"
    rules.write_text('elementwise_op("mine.op").\n')
    module.write_text(
        "func.func @f(%0: tensor<4xf32>) {\n"
        '  %1 = "mine.op"(%0) : (tensor<4xf32>) -> tensor<4xf32>\n  return\n}'
    )
    command = ["rules", "show", "mine.op", "--rules", str(rules)]
    assert main(command) == 0
    assert capsys.readouterr().out.endswith("--examples MODULE\n")
    assert main([*command, "--examples", str(module)]) == 0
    assert "([i])->([i]) {i=4}\n" in capsys.readouterr().out


def test_ops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module, rules = tmp_path / "m.mlir", tmp_path / "mine.rules"
    module.write_text(MODULE)
    rules.write_text("mine.op: i j -> i j\n")
    assert main(["ops", str(module), "--rules", str(rules), "--json"]) == 0
    rows = {row["op"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["stablehlo.dot"]["says"] == "([i, k], [k, j])->([i, j]) {i=8, j=2, k=4} reduction={k}"
    assert rows["stablehlo.dot"]["rule"].startswith("rules/ops/stablehlo/contraction.dl:")
    assert rows["mine.op"]["rule"] == f"{rules}:1"
    assert rows["@kernel"]["rule"] == "-"
    assert rows["@kernel"]["says"].startswith(f"none, at {module}:5:8: the target is not known")
    assert list(rows)[-1] == "@kernel"


def test_ops_counts_what_has_no_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "m.mlir"
    module.write_text(MODULE)
    assert main(["ops", str(module)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "5 ops, 2 without a rule: @kernel, mine.op"


def test_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, examples = tmp_path / "mine.rules", tmp_path / "m.mlir"
    rules.write_text("stablehlo.dot: i j, j k -> i k\n")
    examples.write_text(MODULE)
    assert main(["rules", "check", str(rules), "--examples", str(examples)]) == 2
    shown = capsys.readouterr()
    assert f"{examples}:3:8: error: stablehlo.dot: factor 1" in shown.out
    assert "rules check: error: 1 wrong" in shown.err


def test_check_of_a_reference_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "mine.rules"
    rules.write_text("@kernel: i -> i\n")
    assert main(["rules", "check", str(rules), "--reference", "@kernel=nowhere:f"]) == 2
    assert "--reference @kernel=nowhere:f: error: cannot load the function" in capsys.readouterr().err
