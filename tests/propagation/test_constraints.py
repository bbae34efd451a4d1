"""The fate of a sharding constraint, by what is known of its value."""

from __future__ import annotations

from typing import Any

import pytest
from shardlog.engine import load

from .turns import RULES

PROGRAM = load([RULES / "constraints.dl"], key="demand", include_from=[RULES.parent])


def decided(
    *known: str, by: str = "constraint", uses: tuple[str, ...] = (), shardy: str = "0.10"
) -> dict[str, Any]:
    facts: dict[str, Any] = {"demanded": [(by,)], "other_use": [(place,) for place in uses]}
    answers = PROGRAM.solver({"shardy_version": [(shardy,)]}).solve(facts | {name: [()] for name in known})
    assert bool(answers.pop("met_in_functions")) == (shardy == "0.12")  # of all demands
    return {name: rows for name, rows in answers.items() if rows}


def test_a_closed_constraint_is_the_sharding_of_its_value() -> None:
    assert [*decided()] == ["becomes_sharding"]
    assert [*decided(by="computation")] == ["becomes_sharding"]
    assert [*decided("also_demanded")] == ["becomes_sharding"]


@pytest.mark.parametrize("why", ["value_sharded", "has_open_dimension", "contradicted"])
def test_it_stays_a_constraint(why: str) -> None:
    assert decided(why) == decided(why, "data_flows_in") == {}


def test_where_data_flows_in_it_takes_over_the_uses() -> None:
    assert [*decided("data_flows_in")] == ["takes_over"]
    assert [*decided("data_flows_in", "has_unreduced_axes")] == ["takes_over", "leaves_unreduced"]
    assert [*decided("data_flows_in", by="computation")] == ["takes_over", "stands_apart"]


def test_a_chain_takes_over_later_uses() -> None:
    uses = ("earlier", "elsewhere", "later", "return")
    assert decided("chain", uses=uses)["chain_takes_over"] == [("later",)]


@pytest.mark.parametrize("why", ["continues_chain", "value_sharded", "also_demanded", "end_demanded"])
def test_a_chain_takes_over_nothing(why: str) -> None:
    assert "chain_takes_over" not in decided("chain", why, uses=("later",))


@pytest.mark.parametrize(("shardy", "free"), [("0.10", False), ("0.11", False), ("0.12", True)])
def test_an_open_sharding_leaves_the_value_free_since(shardy: str, free: bool) -> None:
    known = ("value_sharded", "value_open")
    assert [*decided(*known, shardy=shardy)] == ["becomes_sharding"] * free
    assert [*decided("chain", *known, uses=("later",), shardy=shardy)] == (
        ["becomes_sharding", "chain_takes_over"] * free
    )


@pytest.mark.parametrize(("shardy", "flows"), [("0.10", False), ("0.11", False), ("0.12", True)])
def test_data_flows_into_functions_that_nothing_calls_since(shardy: str, flows: bool) -> None:
    assert [*decided("uncalled_argument", shardy=shardy)] == ["takes_over" if flows else "becomes_sharding"]
