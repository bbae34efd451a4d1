"""The plain programs over a whole module: stages, sharding groups, constant sub-computations."""

from __future__ import annotations

from typing import Any

import pytest
from shardlog.engine import load

from .turns import RULES


def evaluate(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    return load([RULES / name], include_from=[RULES.parent]).evaluate(facts)


def stages(strategy: str, *priorities: int) -> list[Any]:
    facts = {
        "strategy_wanted": [(strategy,)],
        "op_priority_level": [(n,) for n in range(5)],
        "priority_used": [(n,) for n in priorities],
    }
    return [row[1:] for row in evaluate("schedule.dl", facts)["stage"]]


@pytest.mark.parametrize("strategy", ["basic", "aggressive"])
def test_a_strategy_alone_is_one_stage_without_op_priorities(strategy: str) -> None:
    assert stages(strategy) == [(0, -1, strategy)]


def test_basic_then_aggressive_is_two_stages() -> None:
    assert stages("basic-then-aggressive") == [(0, -1, "basic"), (0, -1, "aggressive")]


def test_op_priorities_are_five_stages_of_the_aggressive_strategy() -> None:
    assert stages("op-priority", 3) == [(0, level, "aggressive") for level in range(5)]


def test_user_priorities_go_through_the_op_priorities_one_after_the_other() -> None:
    assert stages("user-priority") == [(0, level, "aggressive") for level in range(5)]
    expected = [(n, level, "aggressive") for n in (0, 2, 7) for level in range(5)]
    assert stages("user-priority", 7, 0, 2) == expected


def test_groups_that_share_a_value_are_one() -> None:
    leaders = evaluate("groups.dl", {"grouped": [(1, 10), (2, 10), (2, 11), (5, 11), (7, 12)]})["leader"]
    assert leaders == [(1, 1), (2, 1), (5, 1), (7, 7)]


def test_groups_are_one_through_any_number_of_others() -> None:
    """Values 0, 2, 4, ... and 1, 3, 5, ... in two chains, of groups in no particular order."""
    chains = [(v, 10 + 7 * v % 20) for v in range(20)] + [(v + 2, 10 + 7 * v % 20) for v in range(18)]
    assert evaluate("groups.dl", {"grouped": chains})["leader"] == [(v, v % 2) for v in range(20)]


def test_a_group_of_many_members_is_no_more_work_than_many_groups() -> None:
    many = [(v, 0) for v in range(20_000)]
    assert evaluate("groups.dl", {"grouped": many})["leader"] == [(v, 0) for v in range(20_000)]


def test_constants_and_what_is_computed_from_them_alone() -> None:
    """%0 = constant; %1 = add %0, %0; %2 = add %1, %arg; %3 = broadcast %arg; %4 = an op without
    operands."""
    constant, add, broadcast = 0, 1, 2
    found = evaluate(
        "constants.dl",
        {
            "op_class": [(0, constant), (1, add), (2, add), (3, broadcast), (4, add)],
            "constant": [(constant,)],
            "keeps_constant": [(add,), (broadcast,)],
            "expands_scalar": [(broadcast,)],
            "operand": [(1, 0, 0), (1, 1, 0), (2, 0, 1), (2, 1, -1), (3, 0, -1)],
        },
    )
    assert found["constant_expression"] == [(0,), (1,), (4,)]
    assert found["scalar_expansion"] == [(3,)]
