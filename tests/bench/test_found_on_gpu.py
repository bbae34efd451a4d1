"""What the script for a GPU judges."""

from __future__ import annotations

from .found_on_gpu import Plan, misordered, spread


def test_plans_are_out_of_order_if_the_cheaper_one_took_longer() -> None:
    plans = [Plan("a", 1.0, 10.0), Plan("b", 1.01, 9.0), Plan("c", 2.0, 9.5), Plan("d", 3.0, 9.8)]
    assert misordered(plans, 0.03) == [("a", "c")]  # b costs as much as a, and d took as long
    assert misordered(plans[1:], 0.03) == []


def test_plans_are_spread_from_the_first_to_the_last() -> None:
    assert spread("abcdefghi", 5) == ["a", "c", "e", "g", "i"]
    assert spread("abc", 5) == ["a", "b", "c"]
