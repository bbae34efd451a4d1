"""Recursive relations that are read beside a condition: fewer tuples, the same outputs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardlog.datalog import Program

from ..support.drawing import drawing

EDGES = """
.decl edge(x: number, y: number)
.decl wanted(x: number)
.decl path(x: number, y: number)
.decl found(x: number, y: number)
.output found
edge(1, 2). edge(2, 3). edge(3, 4). edge(4, 5). edge(2, 6).
wanted(4). wanted(5).
"""
LINEAR = "path(x, y) :- edge(x, y). path(x, z) :- edge(x, y), path(y, z)."
FORWARD = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
TWICE = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), path(y, z)."


def check_counts(text: str, relation: str = "path") -> tuple[int, int]:
    """How many tuples a relation has in full, and where outputs alone matter; these are equal."""
    programs = [Program(text, magic=magic) for magic in (False, True)]
    for program in programs:
        program.run_outputs()
    whole, narrowed = programs
    assert all(whole.rows(name) == narrowed.rows(name) for name in whole.outputs)
    first, second = (program.count(relation) for program in programs)
    return first, second


@pytest.mark.parametrize(
    ("rules", "reader", "expected"),
    [
        (LINEAR, "found(x, y) :- path(x, y), wanted(y).", 7),
        (FORWARD, "found(x, y) :- path(x, y), wanted(x).", 1),
        (LINEAR, "found(x, y) :- path(x, y), !wanted(y).", 5),
        (LINEAR, "found(x, y) :- path(x, y), y > 4, wanted(x).", 6),
        (LINEAR, "found(x, y) :- path(x, y), edge(y, _).", 6),
        # The conditions that all readers have.
        (LINEAR, "found(x, y) :- path(x, y), wanted(y), y > 4. found(y, y) :- path(_, y), wanted(y).", 7),
        # The tuple of a fact is not asked for more.
        (LINEAR + " path(9, 4). path(9, 3).", "found(x, y) :- path(x, y), wanted(y).", 8),
    ],
)
def test_only_tuples_that_readers_take(rules: str, reader: str, expected: int) -> None:
    whole, narrowed = check_counts(f"{EDGES}{rules}\n{reader}")
    assert narrowed == expected < whole


@pytest.mark.parametrize(
    ("rules", "reader"),
    [
        (FORWARD, "found(x, y) :- path(x, y), wanted(y)."),  # the recursion changes it
        (TWICE, "found(x, y) :- path(x, y), wanted(y)."),
        (LINEAR, "found(x, y) :- path(x, y), wanted(y). found(x, y) :- path(x, y), wanted(x)."),
        (LINEAR, "found(x, y) :- path(x, y), wanted(y). found(1, n) :- n = count : { path(_, _) }."),
        (LINEAR, "found(x, y) :- path(x, y), wanted(y). found(0, 0) :- !path(5, 1)."),
        (LINEAR, "found(x, y) :- path(x, y), wanted(y). found(x, x) :- path(x, 4), wanted(4)."),
        # What the condition asks for comes from the paths.
        (LINEAR, "wanted(x) :- path(x, _). found(x, y) :- path(x, y), wanted(y)."),
        (LINEAR, ".limitsize path(n=100)\nfound(x, y) :- path(x, y), wanted(y)."),
        (LINEAR, ".output path\nfound(x, y) :- path(x, y), wanted(y)."),
    ],
)
def test_relations_that_stay_whole(rules: str, reader: str) -> None:
    whole, narrowed = check_counts(f"{EDGES}{rules}\n{reader}")
    assert narrowed == whole


@drawing(16)
@given(
    st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14),
    st.sampled_from([LINEAR, FORWARD, TWICE]),
    st.lists(st.sampled_from(["wanted(y)", "!wanted(y)", "y > 2", "wanted(x)", "x < 3"]), min_size=2),
)
def test_outputs_are_the_same(edges: set[tuple[int, int]], rules: str, conditions: list[str]) -> None:
    facts = " ".join(f"edge({x}, {y})." for x, y in sorted(edges))
    readers = "\n".join(f"found(x, y) :- path(x, y), {condition}." for condition in conditions)
    both = f"found(y, x) :- path(x, y), {', '.join(conditions)}."
    check_counts("\n".join([EDGES, facts, rules, readers, both]))
    check_counts("\n".join([EDGES, facts, rules, both]))


@pytest.mark.parametrize(
    ("kind", "constants", "condition"),
    [("unsigned", "18446744073709551615 5", "y < 9"), ("float", "1 2.5", "y < 1.5")],
)
def test_constants_are_compared_as_the_column_is(kind: str, constants: str, condition: str) -> None:
    text = EDGES.replace("y: number", f"y: {kind}").split("edge(1, 2)")[0]
    facts = " ".join(f"path(1, {constant})." for constant in constants.split())
    rules = f"edge(2, 1). path(x, y) :- edge(x, _), path(_, y). found(x, y) :- path(x, y), {condition}."
    check_counts("\n".join([text, facts, rules]))


def test_rounds_that_each_find_little() -> None:
    """The next shown one after runs of others: as many tuples as there are, not the square of it."""
    count = 400
    chain = "\n".join(f"edge({i}, {i + 1})." for i in range(count))
    text = f"""{EDGES.replace("wanted(4). wanted(5).", "")}
        {chain}
        wanted({count}).
        .decl skip(x: number, y: number)
        skip(x, y) :- edge(x, y).
        skip(x, z) :- edge(x, y), !wanted(y), skip(y, z).
        path(x, y) :- edge(x, y).
        found(x, y) :- skip(x, y), wanted(y)."""
    whole, narrowed = check_counts(text, "skip")
    assert narrowed <= count + 6 < whole / 100
