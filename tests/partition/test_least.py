"""The least sum of terms: small ones, of which every choice is tried."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import shardlog
from hypothesis import given
from hypothesis import strategies as st
from shardlog.partition.choice.least.least import lower_bound, pass_messages, settle
from shardlog.partition.choice.least.sums import (
    ALL,
    EQUALLY,
    FAR,
    ONWARDS,
    Floats,
    Integers,
    Reference,
    Saying,
    Sum,
    Terms,
    sum_of,
)
from shardlog.runs.choice import ProgramChoice

from ..support import tools
from ..support.drawing import drawing
from ..support.programs import lowered

pytestmark = pytest.mark.core
core = tools.core("partition.choice.least")

SEEDS = st.integers(0, 2**32 - 1)
ZERO: Integers = np.asarray([[0]], np.int64)
FIRST: Integers = np.asarray([0], np.int64)  # the line of a single way


def never() -> bool:
    return False


def random_sum(seed: int, *, tree: bool = False) -> tuple[list[Terms], Floats]:
    """Terms with one to five ways of up to three variables, and what two to five variables with one to four
    values cost on their own; ``tree``: each term joins a variable to those of earlier terms."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 6))
    widths = rng.integers(1, 5, count).tolist()
    rows = [rng.permutation(count)[: rng.integers(1, 4)].tolist() for _ in range(rng.integers(1, 6))]
    if tree:
        rows = [[n, int(rng.integers(0, n))] for n in range(1, count)]
    alike: dict[tuple[int, ...], list[list[int]]] = {}
    for row in rows:
        alike.setdefault(tuple(widths[n] for n in row), []).append(row)
    terms = []
    for shape, each in alike.items():
        ways = int(rng.integers(1, 6))
        lines = [np.unique(rng.integers(0, 5, ways), return_inverse=True)[1] for _ in shape]
        tables = [
            rng.integers(0, 20, (line.max() + 1, width)).astype(float)
            for line, width in zip(lines, shape, strict=True)
        ]
        base = rng.integers(0, 20, ways).astype(float)
        terms.append(Terms(base, lines, tables, np.asarray(each), np.ones(len(each))))
    alone = rng.integers(0, 20, (count, max(widths))).astype(float)
    alone[np.arange(max(widths)) >= np.asarray(widths)[:, None]] = FAR
    return terms, alone


def by_hand(terms: Sequence[Terms], alone: Floats, chosen: Sequence[int] | Integers) -> float:
    """The sum for a choice of values."""
    found = float(sum(alone[n, value] for n, value in enumerate(chosen)))
    for term in terms:
        for row in term.variables:
            found += float(costs(term, row.tolist(), chosen).min())
    return found


def costs(term: Terms, variables: Sequence[int], chosen: Sequence[int] | Integers) -> Floats:
    """The cost of each way of a term with these variables."""
    slots = zip(term.lines, term.tables, variables, strict=True)
    each = [[table[line, chosen[n]] for line in lines] for lines, table, n in slots]
    costs: Floats = term.base + np.asarray(each).sum(axis=0)
    return costs


def choices(alone: Floats) -> list[tuple[int, ...]]:
    """Every choice of values."""
    return list(itertools.product(*(range(int((costs < FAR).sum())) for costs in alone)))


def bound(total: Sum, terms: Sequence[Terms], alone: Floats) -> float:
    """The bound of a sum of which no row and no variable stands for several, which is found in two ways."""
    members = {n: (np.arange(len(term.variables)), term.variables) for n, term in enumerate(terms)}
    bound = total.bound()
    assert bound == pytest.approx(lower_bound(total, alone, members))
    return bound


@drawing(12)
@given(SEEDS)
def test_energies_gains_and_ways_are_those_of_every_choice(seed: int) -> None:
    terms, alone = random_sum(seed)
    for total in (sum_of(terms, alone, np.ones(len(alone))), Reference(terms, alone, np.ones(len(alone)))):
        for chosen in choices(alone)[:20]:
            values = np.asarray(chosen)
            energy = by_hand(terms, alone, chosen)
            assert total.energy(values) == energy
            gains = total.gains(values)
            for n, value in np.argwhere(alone < FAR).tolist():
                other = (*chosen[:n], value, *chosen[n + 1 :])
                assert gains[n, value] == pytest.approx(by_hand(terms, alone, other) - energy)
            assert np.isinf(gains[alone >= FAR]).all()
            for number, term in enumerate(terms):
                for way, row in zip(total.taken(number, values), term.variables, strict=True):
                    assert way == costs(term, row.tolist(), chosen).argmin()


@given(SEEDS)
def test_what_is_found_is_a_choice_and_no_less_than_the_bound(seed: int) -> None:
    terms, alone = random_sum(seed)
    total = sum_of(terms, alone, np.ones(len(alone)))
    least = min(by_hand(terms, alone, chosen) for chosen in choices(alone))
    told = pass_messages(total, 10, ALL, stop=never)
    assert bound(total, terms, alone) <= least + 1e-6
    bounds = []
    for turn in range(4):
        shared = pass_messages(total, 10, ONWARDS if turn < 2 else EQUALLY, lasting=True, stop=never)
        bounds.append(bound(total, terms, alone))
    assert max(bounds) <= least + 1e-6
    for start in (told, shared):
        found, energy = settle(total, start, never)
        assert least - 1e-6 <= energy <= by_hand(terms, alone, start) + 1e-6
        assert energy == pytest.approx(by_hand(terms, alone, found))


@given(SEEDS)
def test_on_a_tree_the_least_is_found_and_proved(seed: int) -> None:
    terms, alone = random_sum(seed, tree=True)
    total = sum_of(terms, alone, np.ones(len(alone)))
    least = min(by_hand(terms, alone, chosen) for chosen in choices(alone))
    told = pass_messages(total, 60, ALL, lasting=True, stop=never)
    assert settle(total, told, never)[1] == pytest.approx(least)
    pass_messages(total, 2000, ONWARDS, lasting=True, stop=never)
    assert bound(total, terms, alone) == pytest.approx(least, rel=0.02, abs=0.2)


@given(SEEDS, st.integers(0, 9))
def test_a_move_has_the_least_of_a_tree(seed: int, turn: int) -> None:
    terms, alone = random_sum(seed, tree=True)
    size = np.ones(len(alone))
    least = min(by_hand(terms, alone, chosen) for chosen in choices(alone))
    for total in (sum_of(terms, alone, size), Reference(terms, alone, size)):
        assert total.energy(total.moved(np.zeros(len(alone), np.int64), turn)) == pytest.approx(least)


@given(SEEDS, st.integers(0, 9))
def test_a_move_is_no_worse_and_the_same_without_the_core(seed: int, turn: int) -> None:
    terms, alone = random_sum(seed)
    rng = np.random.default_rng(seed)
    terms = [term._replace(counts=rng.integers(1, 40, len(term.counts)).astype(float)) for term in terms]
    size = rng.integers(1, 40, len(alone)).astype(float)
    both = sum_of(terms, alone, size), Reference(terms, alone, size)
    start = np.asarray([rng.integers(0, (costs < FAR).sum()) for costs in alone])
    mine, theirs = (total.moved(start, turn) for total in both)
    before, after, other = (both[0].energy(chosen) for chosen in (start, mine, theirs))
    assert after <= before + 1e-9
    assert other == pytest.approx(after)
    assert (alone[np.arange(len(alone)), mine] < FAR).all()


@given(SEEDS, st.sampled_from([ALL, ONWARDS, EQUALLY]), st.booleans())
def test_the_core_says_what_the_reference_says(seed: int, saying: Saying, lasting: bool) -> None:
    terms, alone = random_sum(seed)
    rng = np.random.default_rng(seed)
    terms = [term._replace(counts=rng.integers(1, 40, len(term.counts)).astype(float)) for term in terms]
    size = rng.integers(1, 40, len(alone)).astype(float)
    both = sum_of(terms, alone, size), Reference(terms, alone, size)
    assert isinstance(both[0], core.Sum)
    for sweep in range(4):
        for total in both:
            total.sweep(sweep % 2 == 1, saying, lasting)
        for number, term in enumerate(terms):
            for slot in range(len(term.tables)):
                mine, theirs = (total.messages(number, slot) for total in both)
                np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-6)
    assert both[0].left() == pytest.approx(both[1].left(), rel=1e-9, abs=1e-6)
    assert both[0].bound() == pytest.approx(both[1].bound(), rel=1e-9, abs=1e-6)
    chosen = np.zeros(len(alone), np.int64)
    mine, theirs = (total.gains(chosen) for total in both)
    np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-6)


def test_without_the_core_the_same_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    result = shardlog.run(lowered("attention", 3))
    expected = result.partition().text()
    assert expected != result.partition(keep_shardings=True).text()
    monkeypatch.setitem(sys.modules, core.__name__, None)
    assert result.programs.made(ProgramChoice()).text() == expected


def test_the_first_of_equal_values_and_ways_is_taken() -> None:
    table = np.asarray([[3.0, 1.0, 1.0]])
    terms = [Terms(np.zeros(2), [np.asarray([0, 0], np.int64)], [table], ZERO, np.ones(1))]
    alone, size = np.zeros((1, 3)), np.ones(1)
    for total in (sum_of(terms, alone, size), Reference(terms, alone, size)):
        total.sweep(False, ALL, False)
        assert total.best().tolist() == [1]
        assert total.taken(0, total.best()) == [0]


def test_it_stops_when_it_is_told_to() -> None:
    both, equal = np.asarray([0, 1], np.int64), np.asarray([[0.0, 9.0], [9.0, 0.0]])  # the two have one value
    terms = [Terms(np.zeros(2), [both, both], [equal, equal], np.asarray([[0, 1]], np.int64), np.ones(1))]
    total = sum_of(terms, np.asarray([[0.0, 0.0], [1.0, 0.0]]), np.ones(2))
    assert pass_messages(total, 9, ALL, stop=lambda: True).tolist() == [0, 1]
    assert pass_messages(total, 9, ALL, stop=never).tolist() == [1, 1]


@given(SEEDS)
def test_values_that_are_no_better_are_left_out(seed: int) -> None:
    terms, alone = random_sum(seed)
    widths, size = (alone < FAR).sum(axis=1), np.ones(len(alone))
    twice = np.full((len(alone), 2 * alone.shape[1]), FAR)  # each value once more, as one that costs more
    for n, width in enumerate(widths.tolist()):
        twice[n, : 2 * width] = *alone[n, :width], *(alone[n, :width] + 100)
    terms = [term._replace(tables=[np.hstack([t, t]) for t in term.tables]) for term in terms]
    for total in (sum_of(terms, twice, size), Reference(terms, twice, size)):
        assert (total.best() < widths).all()
        assert (total.moved(widths, 0) < widths).all()
        for number, term in enumerate(terms):
            for slot, table in enumerate(term.tables):
                assert (total.messages(number, slot)[:, table.shape[1] // 2 :] == FAR).all()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"variables": np.asarray([[7]])}, "variables that there are not"),
        ({"variables": np.asarray([[-1]])}, "-1 is below 0"),
        ({"tables": [np.zeros((1, 9))]}, "values or variables that there are not"),
        ({"lines": [np.asarray([1])]}, "lines, values or variables that there are not"),
        ({"lines": [np.asarray([0, 0])]}, "lines, values or variables that there are not"),
        ({"counts": np.ones(4)}, "a count for each row"),
        ({"base": np.zeros(0)}, "a term needs ways"),
    ],
)
def test_terms_that_do_not_fit_are_refused(change: dict[str, Any], error: str) -> None:
    term = Terms(np.zeros(1), [FIRST], [np.zeros((1, 2))], ZERO, np.ones(1))
    with pytest.raises(ValueError, match=error):
        sum_of([term._replace(**change)], np.zeros((1, 2)), np.ones(1))


def test_choices_that_do_not_fit_are_refused() -> None:
    term = Terms(np.zeros(1), [FIRST], [np.zeros((1, 2))], ZERO, np.ones(1))
    total = sum_of([term], np.zeros((1, 2)), np.ones(1))
    wrong: list[Integers] = [np.asarray(each, np.int64) for each in ([2], [0, 0], [-1])]
    for chosen in wrong:
        with pytest.raises(ValueError):
            total.energy(chosen)
    with pytest.raises(ValueError, match="no terms 1"):
        total.messages(1, 0)
    with pytest.raises(ValueError, match="no slot 1"):
        total.messages(0, 1)
