"""User priorities: what an annotation holds in the sweep of each priority."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ..support import oracle
from ..support.drawing import drawing
from . import shardy
from .random_turns import random_case, random_mesh
from .solving import answers, turn
from .turns import Case, Facts

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
    return answers(AXES, {**ANNOTATION, **held, "sweep": [(priority,)]})


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


# ---- Random annotations of one op, against Shardy ---------------------------------------------------------

STATE = ("mesh", "sharded", "closed", "fixed")


def with_priorities(random: Random, case: Case) -> Case:
    """The case with priorities on some dimensions. A closed one without axes must have none."""
    priorities = {
        (t, d): random.randint(0, 2)
        for t, held in enumerate(case.held)
        for d, (axes, closed) in enumerate(held.dims if held else ())
        if random.random() < 0.5 and (axes or not closed)
    }
    return replace(case, priorities=priorities, strategy="aggressive")


def propagated(case: Case) -> dict[int, Any]:
    """The gains of the slots in the sweeps of all priorities, each with a turn of the op at every level."""
    solver = turn().solver({"axis": case.mesh.facts()})
    static = case.facts()
    state = {name: static.pop(name) for name in STATE}
    annotations = {
        t: {
            "annotation": [row[1:] for row in state["sharded"] if row[0] == t],
            "annotation_closed": [row[1:] for row in state["closed"] if row[0] == t],
            "annotation_priority": [(d, n) for (u, d), n in case.priorities.items() if u == t],
        }
        for t in {t for (t, _), n in case.priorities.items() if n > 0}
    }

    def update(answer: Any, slot: int) -> None:
        """Stores the new contents; slot 0 of the answer is `slot`."""
        changed = {t + slot for (t,) in answer["changed"]}
        for name in STATE:
            kept = [row for row in state[name] if row[0] not in changed]
            state[name] = kept + [(row[0] + slot, *row[1:]) for row in answer[f"becomes_{name}"]]

    for priority in sorted({0, *case.priorities.values()}):
        for t, annotation in annotations.items():
            held = {name: [(0, *row[1:]) for row in rows if row[0] == t] for name, rows in state.items()}
            update(solver.solve({**annotation, **held, "sweep": [(priority,)]}), t)
        for _level in (2, 3, 4):  # from level 2 on all factors of a custom call pass
            update(solver.solve({**static, **state}), 0)
    every_slot = [(t,) for t in range(len(case.slots))]
    now = case.gained({"changed": every_slot, **{f"becomes_{name}": state[name] for name in STATE}})
    opened = case.gained({"changed": every_slot, "becomes_sharded": [], "becomes_closed": []})
    before = {t: opened[t] if h is None else h.dims for t, h in enumerate(case.held)}
    return {t: dims for t, dims in now.items() if dims != before[t]}


@drawing(80)
@given(st.randoms(use_true_random=False))
def test_random_annotations_with_priorities_gain_what_shardy_gains(random: Random) -> None:
    mesh = random_mesh(random, composite=False)
    cases = [with_priorities(random, random_case(random, mesh)) for _ in range(5)]
    expected = oracle.forked(shardy.gains, cases, "sdy-user-priority-propagate")
    for case, gains in zip(cases, expected, strict=True):
        assert propagated(case) == gains, shardy.module(case)
