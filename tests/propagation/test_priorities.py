"""User priorities: what an annotation holds in the sweep of each priority."""

from __future__ import annotations

from .solving import answers
from .turns import Facts

AXES = [(0, 0, "a", 1, 2), (1, 0, "b", 1, 2), (2, 0, "c", 1, 2)]

# [{"a"}, {"b", ?}p1, {?}p2], replicated={"c"}
ANNOTATION: Facts = {
    "annotation": [(0, 0, 0), (1, 0, 1)],
    "annotation_closed": [(0,)],
    "annotation_priority": [(0, 0), (1, 1), (2, 2)],
}
WHOLE: Facts = {
    "mesh": [(0, 0)],
    "sharded": [(0, 0, 0, 0), (0, 1, 0, 1)],
    "closed": [(0, 0)],
    "fixed": [(0, 2, "replicated")],
}


def sweep(priority: int, held: Facts) -> Facts:
    return answers(AXES, {**ANNOTATION, **held, "priority": [(priority,)]})


def held(answer: Facts) -> Facts:
    return {name: answer.get(f"becomes_{name}", []) for name in ("mesh", "sharded", "closed", "fixed")}


def test_at_first_dimensions_of_other_priorities_are_empty_closed_and_replicated() -> None:
    assert sweep(0, WHOLE) == {
        "changed": [(0,)],
        "becomes_mesh": [(0, 0)],
        "becomes_sharded": [(0, 0, 0, 0)],
        "becomes_closed": [(0, 0), (0, 1), (0, 2)],
        "becomes_fixed": [(0, 1, "replicated"), (0, 2, "replicated")],
    }


def test_a_dimension_gets_its_axes_back_when_its_priority_comes() -> None:
    assert sweep(1, held(sweep(0, WHOLE))) == {
        "changed": [(0,)],
        "becomes_mesh": [(0, 0)],
        "becomes_sharded": [(0, 0, 0, 0), (0, 1, 0, 1)],
        "becomes_closed": [(0, 0), (0, 2)],
        "becomes_fixed": [(0, 2, "replicated")],
    }


def test_what_was_gained_meanwhile_stays() -> None:
    after = held(sweep(1, held(sweep(0, WHOLE))))
    after["sharded"] = [*after["sharded"], (0, 1, 1, 7)]
    assert sweep(2, after)["becomes_sharded"] == after["sharded"]
    assert sweep(2, after)["becomes_closed"] == [(0, 0)]


def test_a_sweep_of_a_priority_that_no_dimension_has_changes_nothing() -> None:
    assert sweep(3, WHOLE) == {}
