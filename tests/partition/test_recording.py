"""What is taken down of a module without writing a program, beside the program that is written."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest
import shardlog
from shardlog.partition import improving
from shardlog.partition.choice.purposes import Purpose
from shardlog.partition.facts.made import Made, Nesting, SentOnce, may_repeat, sendings
from shardlog.partition.layouts import Layout, numbered
from shardlog.partition.plan import Plan
from shardlog.program.ids import Factor, Slot

from ..bench.size import program as unrolled
from ..support import models
from ..support.programs import lowered

PROGRAMS = ("scan", "gradient of a scan", "cond", "shard_map", "attention", "top_k", "sort", "inner jit")


@pytest.fixture
def firsts(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs that propagation decided, of what is partitioned meanwhile."""
    firsts: list[Any] = []
    best = improving.Improving.best

    def kept(self: Any) -> Any:
        firsts.append(self.first)
        _ = self.first.cost  # before collectives weigh something
        written = replace(self.first, facts=replace(self.first.facts, sends=None))
        firsts.append((written.sending, written.cost))
        return best(self)

    monkeypatch.setattr(improving.Improving, "best", kept)
    return firsts


def assert_known_before(module: Any, firsts: list[Any]) -> None:
    """What the plan sends, how often, and what that costs is known before it is written."""
    shardlog.run(module).partition()
    first, (sending, cost) = firsts
    assert first.facts.sends is not None
    assert "written" not in vars(first)
    assert first.sending == sending
    assert first.cost == cost


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_plan_sends_is_known_before_it_is_written(name: str, firsts: list[Any]) -> None:
    assert_known_before(lowered(name, 3), firsts)


def test_what_a_train_step_sends_is_known_before_it_is_written(firsts: list[Any]) -> None:
    assert_known_before(models.text("transformer", depth=2, train=True), firsts)


def test_collectives_that_each_need_the_last_are_known_not_to_be_combined(firsts: list[Any]) -> None:
    shardlog.run(unrolled(100)).partition(topology="v5e")
    first, (sending, cost) = firsts
    assert first.facts.in_turn and "written" not in vars(first)
    assert first.sending == sending and first.cost == cost


@pytest.mark.parametrize("keep", [True, False])
def test_a_program_is_copied_only_to_combine_collectives(keep: bool) -> None:
    program = shardlog.run(unrolled(100)).partition(keep_shardings=keep)
    assert program.in_turn == keep and (program.combined is program.module) == keep
    text, program.in_turn = program.text(), False
    del program.combined
    assert program.text() == text


def test_collectives_beside_each_other_may_be_combined(firsts: list[Any]) -> None:
    shardlog.run(models.text("transformer", depth=2, train=True)).partition(topology="v5e")
    assert not firsts[0].facts.in_turn and "written" in vars(firsts[0])


def collective(*takes: Made, place: Nesting) -> Made:
    """A collective of some values in a block."""
    sent = SentOnce("all_gather", (), 2, 8, False, place, lambda: Purpose(None, Slot(0), None))
    return Made(takes, pure=False, what="all_gather", sent=sent)


def test_collectives_may_be_the_same_only_of_what_is_made_alike() -> None:
    here, there = Nesting(None, False, 0, None), Nesting(None, True, 1, None)
    x, y = Made(pure=False), Made(pure=False)
    sines = [Made([x], what="stablehlo.sine") for _ in range(2)]
    cosine, other = Made([x], what="stablehlo.cosine"), Made([y], what="stablehlo.sine")
    apart = [collective(each, place=here) for each in (sines[0], cosine, other)]
    assert not may_repeat(apart)
    assert not may_repeat([*apart, collective(sines[1], place=there)])
    assert may_repeat([*apart, collective(sines[1], place=here)])


@pytest.mark.parametrize("layers", [1, 2, 9])
def test_collectives_of_equal_layers_are_the_same_only_of_one_value(layers: int) -> None:
    here = Nesting(None, False, 0, None)

    def behind(value: Made) -> Made:
        for _ in range(layers):
            value = Made([value], what="stablehlo.sine")
        return collective(value, place=here)

    x, y = Made(pure=False), Made(pure=False)
    assert not may_repeat([behind(x), behind(y)])
    assert may_repeat([behind(x), behind(y), behind(Made(same=x))])


def test_an_unused_collective_leaves_collectives_that_others_use() -> None:
    here = Nesting(None, False, 0, None)

    def gather(*takes: Made, uses: int, size: int) -> Made:
        sent = SentOnce("all_gather", (), 2, size, False, here, lambda: Purpose(None, Slot(0), None))
        return Made(takes, what="all_gather", sent=sent, uses=uses)

    first = gather(uses=1, size=1)
    shared = gather(first, uses=2, size=2)  # by a sine, and by the result
    alone = gather(uses=1, size=3)
    unused = gather(Made([shared, alone], what="stablehlo.add", uses=1), uses=0, size=4)
    found = sendings([first, shared, alone, unused], lambda _: (1, 1))
    assert found is not None
    assert [sending.bytes for sending in found] == [1, 2]


def test_a_plan_is_a_value() -> None:
    plan = Plan({3: rows_on()}, {5: ((Factor(0), numbered((1,))),)})
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert plan.changed_to(Plan()) == Plan({3: rows_on()})
    pinned = replace(plan, pinned=frozenset({3}))
    assert pinned.changed_to(Plan({3: rows_on(1)})).homes == plan.homes


def rows_on(*pieces: int) -> Any:
    """The layout of a matrix whose rows are split on pieces."""
    return Layout((numbered(pieces), ()))
