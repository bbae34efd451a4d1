"""Columns of the relations of rules: what they stand for is their type."""

from __future__ import annotations

import pytest
from shardlog.engine import Program
from shardlog.rulebook.book import RuleBook, _partition, reasons

PROGRAMS = {**RuleBook().programs(), "reasons": reasons(), "partition": _partition()}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_columns_have_types(program: Program) -> None:
    """A bare number is a count, a size or a key, and is called so: one letter says nothing."""
    for relation in program.plan.relations:
        bare = [column.name for column in relation.columns if column.type_name == "number"]
        assert all(len(name) > 1 for name in bare), relation.name
