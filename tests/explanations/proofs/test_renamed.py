"""Sentences do not depend on what the rules call their variables: a value is printed as its type says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest
import shardlog
from shardlog.engine import load
from shardlog.explanations.answers.why import why_text
from shardlog.explanations.answers.why_not import why_not_text
from shardlog.rulebook import book, shipped

MODULE = """
sdy.mesh @mesh = <["data"=2, "model"=6]>
func.func @main(%x: tensor<12x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
                %w: tensor<24x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}p1]>},
                %c: tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], replicated={"data"}>})
    -> tensor<12x12xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<12x24xf32>, tensor<24x12xf32>) -> tensor<12x12xf32>
  %1 = stablehlo.add %0, %c : tensor<12x12xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<12x12xf32>) -> tensor<12x12xf32>
  %3 = stablehlo.add %1, %2 : tensor<12x12xf32>
  return %3 : tensor<12x12xf32>
}
"""
WORD = re.compile(r'as\((\w+), (\w+)\)|"[^"\n]*"|\b(count|min|max|sum)\b|\b([a-z]\w*)\b(?!\()')


def renamed(rules: Path) -> Iterator[str]:
    """Gives every variable of the rules of turns another name, on the same line. Returns the new rules."""
    program = load([rules / "propagation/blocked.dl"], key="item", include_from=[rules])
    for source in program.plan.sources:
        file = Path(source.file)
        lines = file.read_text().split("\n")
        first, last = source.line - 1, source.line + source.text.count("\n")
        lines[first:last] = [WORD.sub(_rename, line.split(" //")[0]) for line in lines[first:last]]
        above = first - 1
        while lines[above].startswith("///"):
            lines[above] = re.sub(r"\{(\w+?)(_other)?\}", r"{\1_other}", lines[above])
            above -= 1
        file.write_text("\n".join(lines))
        yield source.text


def _rename(word: re.Match[str]) -> str:
    if word[1]:
        return f"as({word[1]}_other, {word[2]})"
    return f"{word[4]}_other" if word[4] else word[0]


def answers() -> list[str]:
    """Everything that is said about the axes of a module."""
    result = shardlog.run(MODULE)
    said = []
    for value in ("%0", "%1", "%2", "%3"):
        said += [why_text(found, full=True) for found in result.why(value)]
        for dim in (0, 1):
            for axis in ("data", "model"):
                try:
                    said += [why_not_text(found, full=True) for found in result.why_not(value, dim, axis)]
                except shardlog.ShardlogError as error:
                    said.append(str(error))
    return said


def test_renaming_variables_changes_nothing_but_the_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = answers()
    rules = tmp_path / "rules"
    copytree(shipped.RULES, rules)
    assert len(list(renamed(rules))) > 100
    monkeypatch.setattr(shipped, "RULES", rules)
    shipped.shipped.cache_clear()
    try:
        assert any("_other" in source.text for source in book.reasons().plan.sources)
        again = answers()
    finally:
        shipped.shipped.cache_clear()
    assert again == said
    assert any("is compatible as axis" in text for text in said)
