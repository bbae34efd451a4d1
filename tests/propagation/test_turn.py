"""One turn: recorded cases, random cases against Shardy, and what the two do not reach."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..support import oracle
from ..support.drawing import by_day, drawing
from . import shardy
from .random_turns import random_case, random_mesh
from .recorded import recorded
from .solving import answers, solved, turn
from .turns import Facts, Mesh, solved_by_souffle

BACKENDS = by_day([("core", 1), ("reference", 10)], [("core", 1), ("reference", 10), ("reference", 1)])


# The slower one has one case of ten by day.
@pytest.mark.parametrize(
    ("backend", "step"), [*BACKENDS, pytest.param("souffle", 1, marks=pytest.mark.souffle)]
)
def test_every_recorded_turn_gives_its_answer(backend: Any, step: int) -> None:
    cases = recorded()[::step]
    found = solved_by_souffle(cases) if backend == "souffle" else solved(cases, backend)
    assert [case for case, gains in zip(cases, found, strict=True) if gains != case.gains] == []


def test_the_recorded_turns_are_all_there() -> None:
    assert len(recorded()) == 5062
    assert sum(bool(case.gains) for case in recorded()) == 1712


@pytest.mark.parametrize("composite", [False, True], ids=["prime powers", "several primes"])
def test_random_turns_gain_what_shardy_gains(composite: bool) -> None:
    @drawing(80)
    @given(st.randoms(use_true_random=False))
    def check(random: Random) -> None:
        mesh = random_mesh(random, composite)
        cases = [random_case(random, mesh) for _ in range(5)]
        expected = oracle.forked(shardy.gains, cases)
        for case, found, gains in zip(cases, solved(cases, "auto"), expected, strict=True):
            assert found == gains, shardy.module(case)

    check()


def test_every_axis_that_is_missing_has_a_reason() -> None:
    cases = recorded()
    axes = sorted({row for case in cases for row in case.mesh.facts()})
    solver = turn("blocked.dl").solver({"axis": axes})
    reasons = set()
    for case in cases:
        answer = solver.solve(case.facts(), ["missing", "denied"])
        assert {row[:4] for row in answer["denied"]} == set(answer["missing"])
        reasons |= {row[4] for row in answer["denied"]}
    assert " ".join(sorted(r.replace(" ", "-") for r in reasons)) == (
        "clash closed direction in-use indivisible overflow replicated result strided taken"
    )


# ---- Examples: an identity with one factor, on the mesh x=2, y=12 ---------------------------------------

MESH = Mesh((("x", 2), ("y", 12)))
X = 0
Y = {(lo, hi): x for x, (name, lo, hi) in MESH.atoms.items() if name == "y"}
IDENTITY: Facts = {
    "tensor": [(0, "operand"), (1, "result")],
    "factor": [(0, 24)],
    "maps": [(0, 0, 0, 0), (1, 0, 0, 0)],
    "flows": [(0, "operand"), (0, "result")],
    "strategy": [("aggressive",)],
}


OTHER = 5  # another mesh, also with an axis "x" of size 2
MAXIMAL = 6
EMPTY = 7


def gained(program: str = "turn.dl", **facts: Any) -> Facts:
    """The answer for an identity, with `facts` about what it holds or instead of its own."""
    axes = [*MESH.facts(), (100, OTHER, "x", 1, 2)]
    return answers(axes, {**IDENTITY, **facts}, program=program, maximal=[MAXIMAL])


def test_a_slot_without_a_sharding_is_bound_to_the_mesh_of_the_others() -> None:
    assert gained(mesh=[(0, 0)], sharded=[(0, 0, 0, X)]) == {
        "changed": [(1,)],
        "becomes_mesh": [(1, 0)],
        "becomes_sharded": [(1, 0, 0, X)],
    }


def test_a_mesh_without_axes_gives_way() -> None:
    assert gained(mesh=[(0, 0), (1, EMPTY)], sharded=[(0, 0, 0, X)])["becomes_mesh"] == [(1, 0)]


def test_nothing_is_gained_between_two_meshes_or_on_a_maximal_one() -> None:
    assert gained(mesh=[(0, 0), (1, OTHER)], sharded=[(0, 0, 0, X)]) == {}
    assert gained(mesh=[(0, 0), (1, MAXIMAL)], sharded=[(0, 0, 0, X)]) == {}


def test_what_a_slot_holds_besides_is_carried_over() -> None:
    half = Y[1, 2]
    assert gained(
        mesh=[(0, 0), (1, 0)],
        sharded=[(0, 0, 0, X)],
        fixed=[(1, half, "unreduced")],
        maps=[(0, 0, 0, 0), (1, 0, 0, 0), (1, 1, 0, 1)],
        factor=[(0, 24), (1, 8)],
        closed=[(1, 1)],
    ) == {
        "changed": [(1,)],
        "becomes_mesh": [(1, 0)],
        "becomes_sharded": [(1, 0, 0, X)],
        "becomes_closed": [(1, 1)],
        "becomes_fixed": [(1, half, "unreduced")],
    }


def test_a_major_factor_takes_the_greatest_common_divisor() -> None:
    """[f g] -> [f, g] with f=6 and "y"=12: f takes "y":(1)6, past the cut at 4, which does not divide 6."""
    whole = [Y[1, 2], Y[2, 3], Y[3, 4], Y[4, 6], Y[6, 12]]
    after = gained(
        factor=[(0, 6), (1, 8)],
        maps=[(0, 0, 0, 0), (0, 0, 1, 1), (1, 0, 0, 0), (1, 1, 0, 1)],
        flows=[(0, "operand"), (1, "operand")],
        mesh=[(0, 0)],
        sharded=[(0, 0, p, x) for p, x in enumerate(whole)],
    )["becomes_sharded"]
    assert after == [(1, 0, p, x) for p, x in enumerate(whole[:4])] + [(1, 1, 0, Y[6, 12])]


def test_sub_axes_that_may_not_stand_beside_each_other() -> None:
    """Slot 1 has "y":(3)4 elsewhere, and 2 does not divide 3: it can take "y":(1)3, but not "y":(1)2."""

    def after(*along: int) -> Facts:
        elsewhere = [(1, 1, p, x) for p, x in enumerate((Y[3, 4], Y[4, 6], Y[6, 12]))]
        return gained(
            factor=[(0, 24), (1, 24)],
            maps=[(0, 0, 0, 0), (1, 0, 0, 0), (1, 1, 0, 1)],
            mesh=[(0, 0), (1, 0)],
            sharded=[(0, 0, p, x) for p, x in enumerate(along)] + elsewhere,
        )

    assert after(Y[1, 2]) == {}
    assert after(Y[1, 2], Y[2, 3])["changed"] == [(1,)]


# ---- Why not ---------------------------------------------------------------------------------------------


def denied(**facts: Any) -> list[Any]:
    return gained("blocked.dl", **facts)["denied"]


def test_reasons_name_the_slot_and_the_factor_in_the_way() -> None:
    both = {"mesh": [(0, 0), (1, 0)], "sharded": [(0, 0, 0, X)]}
    assert denied(**both, closed=[(1, 0)]) == [(1, 0, 0, X, "closed", 1, 0)]
    assert denied(**both, fixed=[(1, X, "replicated")]) == [(1, 0, 0, X, "replicated", 1, 0)]
    assert denied(**both, flows=[(0, "result")]) == [(1, 0, 0, X, "direction", 0, 0)]
    assert denied(
        mesh=[(0, 0), (1, 0)],
        sharded=[(0, 0, 0, X), (1, 1, 0, X)],
        factor=[(0, 24), (1, 24)],
        maps=[(0, 0, 0, 0), (1, 0, 0, 0), (1, 1, 0, 1)],
    ) == [(1, 0, 0, X, "in use", 1, 1)]


def test_slots_of_different_meshes_say_so() -> None:
    assert (1, 0, 0, X, "mesh", 1, 0) in denied(mesh=[(0, 0), (1, OTHER)], sharded=[(0, 0, 0, X)])
