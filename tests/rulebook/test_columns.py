"""Columns of the relations of rules: what they stand for is their type."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_type_hints

import pytest
from shardlog.engine import DatalogError, LoadedProgram
from shardlog.rulebook import columns
from shardlog.rulebook.book import RuleBook, reasons
from shardlog.rulebook.shipped import shipped

PARTITION = {name: shipped(f"partition/{name}") for name in ("candidates", "choice")}
PROGRAMS = {**RuleBook().programs(), "reasons": reasons(), **PARTITION}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_columns_have_types(program: LoadedProgram) -> None:
    """A bare number is a count, a size or a key, and is called so: one letter says nothing."""
    for relation in program.plan.relations:
        bare = [column.name for column in relation.columns if column.type_name == "number"]
        assert all(len(name) > 1 for name in bare), relation.name


@pytest.mark.parametrize(
    ("relation", "row"),
    {
        "maps": columns.Maps,
        "sharded": columns.Sharded,
        "puts": columns.Sharded,
        "becomes_sharded": columns.Sharded,
        "gains": columns.Gains,
        "compatible": columns.Compatible,
        "denied": columns.Denied,
        "loses": columns.Loses,
        "annotation_waits": columns.AnnotationWaits,
    }.items(),
)
def test_rows_are_called_as_in_the_rules(relation: str, row: Any) -> None:
    declared = PROGRAMS["reasons"].relations[relation].columns
    assert row._fields == tuple(column.name for column in declared)
    hints = {str: "symbol", int: "number"}
    assert [hints[t] for t in get_type_hints(row).values()] == [column.type for column in declared]


def test_types_that_have_names_are_types_of_rules() -> None:
    types = {c.type_name for relation in PROGRAMS["reasons"].plan.relations for c in relation.columns}
    assert {columns.SLOT, columns.FACTOR, columns.AXIS} <= types


def test_a_user_need_not_know_the_types(tmp_path: Path) -> None:
    """A number of a user's own may be a dimension; a slot may not."""
    rules = """
        .decl picked(s: sig, d: number)
        picked(s, d) :- op(s, "my.op"), attribute_number(s, "axis", d).
        picked(s, 0) :- op(s, "my.op").
        along(s, 0, 0, d) :- picked(s, d).
    """
    (tmp_path / "my.dl").write_text(rules)
    assert RuleBook((tmp_path / "my.dl",)).ops
    (tmp_path / "my.dl").write_text(rules + "along(s, 1, 0, t) :- slot(s, t, _, _, _).")
    with pytest.raises(DatalogError, match="E0306"):
        _ = RuleBook((tmp_path / "my.dl",)).ops
