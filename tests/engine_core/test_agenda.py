"""The agenda in the core against the one in plain Python, and what both promise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardlog.engine import EngineError, load
from shardlog.engine.agenda.agenda import Agenda, AgendaGraph, Outcome, Pass, ReferenceAgenda
from shardlog.engine.agenda.retirement import lists, nobody

from ..support.drawing import drawing

pytestmark = pytest.mark.core

# Slots get what others have, one number of each parity at most: the order of turns decides which.
TURN = """
.type item <: number
.decl flow(o:item, u:number, t:number)
.decl has(o:item, t:number, v:number)
.decl tagged(o:item, t:number, tag:symbol)
.decl allowed(v:number)
.input flow, has, tagged, allowed

.decl full(o:item, t:number, parity:number)
full(o, t, v % 2) :- has(o, t, v).
.decl gains(o:item, t:number, v:number)
gains(o, t, v) :- flow(o, u, t), has(o, u, v), allowed(v), !full(o, t, v % 2).
.decl tag(o:item, t:number, tag:symbol)
tag(o, t, cat(s, "+")) :- flow(o, u, t), tagged(o, u, s), !tagged(o, t, _).

.decl changed(o:item, t:number)
changed(o, t) :- gains(o, t, _).
changed(o, t) :- tag(o, t, _).
.decl becomes_has(o:item, t:number, v:number)
becomes_has(o, t, v) :- changed(o, t), has(o, t, v).
becomes_has(o, t, v) :- gains(o, t, v).
.decl becomes_tagged(o:item, t:number, tag:symbol)
becomes_tagged(o, t, s) :- changed(o, t), tagged(o, t, s).
becomes_tagged(o, t, s) :- tag(o, t, s).
.output gains
"""
STATE = {"has": "becomes_has", "tagged": "becomes_tagged"}
PROGRAM = load(texts={"turn.dl": TURN}, key="item")
SHARED = {"allowed": [(v,) for v in range(5)]}
Facts = dict[str, list[tuple[Any, ...]]]


def agenda(backend: Any) -> Agenda:
    return Agenda(PROGRAM.solver(SHARED, backend=backend), STATE, "changed", spread=["tagged"])


def int32(numbers: list[int]) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array(numbers, np.int32)


def chain(cells: list[int]) -> AgendaGraph:
    """Items in a row: item i holds places i and i + 1."""
    places = range(len(cells))
    items = len(cells) - 1
    return AgendaGraph(
        classes=int32([0] * items),
        slots=lists([[i, i + 1] for i in range(items)]),
        place_cell=int32(cells),
        cells=lists([[p for p in places if cells[p] == cell] for cell in range(max(cells) + 1)]),
        neighbours=lists([[i for i in (p - 1, p) if 0 <= i < items] for p in places]),
    )


def run(
    flow: list[tuple[int, int]], graph: AgendaGraph, held: list[Facts], kind: Any, items: list[int]
) -> tuple[Agenda, Outcome]:
    """One pass in the core; the reference does the same."""
    outcomes = []
    for backend in ("reference", "core"):
        chosen = agenda(backend)
        statics = int32([chosen.static({"flow": flow}), -1])  # items of class 1 have nothing to do
        contents = int32([chosen.content(facts) for facts in held])
        outcomes.append((chosen, chosen.run(graph, contents, [Pass("only", kind, int32(items), statics)])))
    same(outcomes[0][1], outcomes[1][1])
    return outcomes[1]


def same(a: Outcome, b: Outcome) -> None:
    assert a.contents.tolist() == b.contents.tolist()
    assert [column.tolist() for column in a.log] == [column.tolist() for column in b.log]
    for x, y in zip(a.statistics, b.statistics, strict=True):
        assert replace(x, seconds=0) == replace(y, seconds=0)


def test_a_sweep_notifies_nobody() -> None:
    ran, outcome = run([(0, 1)], chain([0, 1, 2]), [{"has": [(3,)]}, {}, {}], "sweep", [1, 0])
    assert [ran.facts(c) for c in outcome.contents.tolist()] == [{"has": [(3,)]}, {"has": [(3,)]}, {}]
    assert outcome.statistics[0].turns == 2


def test_a_worklist_spreads_a_change() -> None:
    ran, outcome = run([(0, 1)], chain([0, 1, 2]), [{"tagged": [("a",)]}, {}, {}], "worklist", [1, 0])
    assert ran.facts(int(outcome.contents[2])) == {"tagged": [("a++",)]}
    assert list(zip(*(column.tolist() for column in outcome.log), strict=True)) == [
        (0, 0, 1, 1, 0, 2),
        (0, 1, 1, 2, 0, 3),
    ]


def retiring(graph: AgendaGraph, **changes: Any) -> AgendaGraph:
    return replace(graph, retirement=nobody(graph.classes)._replace(**changes))


def test_an_item_that_nothing_keeps_retires_and_what_it_used_has_its_turn() -> None:
    # Item 1 uses what item 0 makes: item 0 takes a turn before item 1 retires, and then it retires too.
    mortal = retiring(
        chain([0, 1, 2, 3]),
        keepers=int32([1, 0, -1]),
        uses=lists([[], [0], []]),
        makers=int32([0]),
        users=lists([[1]]),
    )
    held: list[Facts] = [{"has": [(1,)]}, {}, {}, {}]
    ran, outcome = run([(0, 1)], mortal, held, "worklist", [0, 1, 2])
    assert [ran.facts(c) for c in outcome.contents.tolist()] == [held[0], held[0], {}, {}]
    _, outcome = run([(0, 1)], mortal, held, "worklist", [1, 0, 2])
    assert outcome.statistics[0].turns == 1


def test_what_is_inside_of_an_item_retires_with_it() -> None:
    mortal = retiring(chain([0, 1, 2]), keepers=int32([0, 1]), inside=lists([[1], []]))
    _, outcome = run([(0, 1)], mortal, [{"has": [(1,)]}, {}, {}], "worklist", [0, 1])
    assert outcome.statistics[0].turns == 0


def test_the_maker_of_a_value_with_one_user_left_has_another_turn() -> None:
    # Item 2 retires; item 0 makes the value that it used, and takes a turn again.
    mortal = retiring(
        chain([0, 1, 2, 3]),
        keepers=int32([-1, -1, 0]),
        uses=lists([[], [], [0]]),
        makers=int32([0]),
        users=lists([[1, 2]]),
    )
    _, outcome = run([(0, 1)], mortal, [{}, {}, {}, {}], "worklist", [0, 1, 2])
    assert outcome.statistics[0].turns == 3


def test_an_item_has_another_class_when_what_it_waited_for_has_retired() -> None:
    # Item 0 has nothing to do until item 1, which uses a value of its too, has retired.
    waiting = retiring(
        replace(chain([0, 1, 2]), classes=int32([1, 0])),
        keepers=int32([-1, 0]),
        uses=lists([[], [0]]),
        makers=int32([-1]),
        users=lists([[0, 1]]),
        waits=int32([1, 0]),
        later=int32([0, 0]),
    )
    held: list[Facts] = [{"has": [(1,)]}, {}, {}]
    assert waiting.settled.tolist() == [0, 0]
    _, outcome = run([(0, 1)], waiting, held, "worklist", [0, 1])
    assert outcome.statistics[0].turns == 0
    ran, outcome = run([(0, 1)], waiting, held, "worklist", [1, 0])
    assert [ran.facts(c) for c in outcome.contents.tolist()] == [held[0], held[0], {}]


def test_the_first_content_of_a_cell_spreads_to_companions_without_content() -> None:
    graph = replace(chain([0, 1, 2, 3]), companions=lists([[], [2, 3], [1, 3], [1, 2]]))
    held: list[Facts] = [{"has": [(1,)], "tagged": [("a",)]}, {}, {}, {"has": [(4,)]}]
    ran, outcome = run([(0, 1)], graph, held, "sweep", [0])
    found = [ran.facts(c) for c in outcome.contents.tolist()]
    assert found == [held[0], {"has": [(1,)], "tagged": [("a+",)]}, {"tagged": [("a+",)]}, held[3]]


def test_places_of_one_cell_change_together() -> None:
    # Places 1 and 2 share a cell: what item 0 writes to place 1 tells item 2, a neighbour of place 2.
    ran, outcome = run([(0, 1)], chain([0, 1, 1, 2]), [{"has": [(1,)]}, {}, {}], "worklist", [2, 0])
    assert ran.facts(int(outcome.contents[2])) == {"has": [(1,)]}


def test_of_two_slots_with_one_cell_the_last_one_written_stays() -> None:
    # Slot 0 and slot 1 hold the same cell and gain from slot 2; both start from the content before the turn.
    graph = AgendaGraph(
        int32([0]), lists([[0, 1, 2]]), int32([0, 0, 1]), lists([[0, 1], [2]]), lists([[0], [0], [0]])
    )
    held: list[Facts] = [{}, {"has": [(2,)], "tagged": [("x",)]}]
    ran, outcome = run([(2, 0), (2, 1)], graph, held, "sweep", [0])
    assert ran.facts(int(outcome.contents[0])) == {"has": [(2,)], "tagged": [("x+",)]}
    assert outcome.log.slot.tolist() == [0, 1]
    assert outcome.log.old.tolist() == [0, outcome.log.new[0]]


def test_equal_neighbourhoods_are_solved_once() -> None:
    held: list[Facts] = [{"has": [(3,)]} for _ in range(6)]
    _, outcome = run([(0, 1)], chain([0, 1, 2, 3, 4, 5]), held, "worklist", [0, 1, 2, 3, 4])
    assert (outcome.statistics[0].turns, outcome.statistics[0].solved) == (5, 1)


@pytest.mark.parametrize("backend", ["core", "reference"])
def test_contents_and_explanations(backend: Any) -> None:
    ran = agenda(backend)
    content = ran.content({"has": [(3,), (1,), (3,)], "tagged": []})
    assert content == ran.content({"has": [(1,), (3,)]})
    assert ran.content({}) == 0
    assert ran.facts(content) == {"has": [(1,), (3,)]}
    static = ran.static({"flow": [(0, 1)]})
    assert ran.explain(static, [content, 0], ["gains"]) == {"gains": [(1, 1), (1, 3)]}


@pytest.mark.parametrize("backend", ["core", "reference"])
def test_only_state_relations_make_a_content(backend: Any) -> None:
    with pytest.raises(EngineError, match="`flow` is no state relation"):
        agenda(backend).content({"flow": [(1,)]})


def test_a_graph_that_does_not_fit_is_reported() -> None:
    graph = AgendaGraph(int32([0]), lists([[7]]), int32([0]), lists([[0]]), lists([[0]]))
    with pytest.raises(EngineError, match="slot holds 7, but there are 1"):
        agenda("core").run(graph, int32([0]), [])


def test_progress_is_told_and_may_stop_a_run() -> None:
    ran, told = agenda("core"), []
    statics = int32([ran.static({})])
    passes = [Pass("a", "sweep", int32([0]), statics), Pass("b", "worklist", int32([]), statics)]
    ran.run(chain([0, 1]), int32([0, 0]), passes, lambda *news: told.append(news))
    assert told == [(0, 1), (1, 0)]

    def stop(number: int, turns: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ran.run(chain([0, 1]), int32([0, 0]), passes, stop)


@st.composite
def agendas(
    draw: st.DrawFn,
) -> tuple[list[Facts], list[Facts], AgendaGraph, list[tuple[str, list[int], list[int]]]]:
    """Static facts, contents, a graph, and passes: kind, items, and for each class a set of static facts."""
    items, places = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    cells = [draw(st.integers(0, places - 1)) for _ in range(places)]
    slots = [draw(st.lists(st.integers(0, places - 1), min_size=2, max_size=3)) for _ in range(items)]
    slot = st.integers(0, min(map(len, slots)) - 1)
    statics: list[Facts] = [{"flow": draw(st.lists(st.tuples(slot, slot), max_size=4))} for _ in range(3)]
    held: list[Facts] = [
        {
            "has": draw(st.lists(st.tuples(st.integers(0, 5)), max_size=2)),
            "tagged": draw(st.lists(st.sampled_from([("a",), ("b",)]), max_size=1)),
        }
        for _ in range(places)
    ]
    shared = [[place for place in range(places) if cells[place] == cell] for cell in range(places)]
    graph = AgendaGraph(
        classes=int32([draw(st.integers(0, 1)) for _ in range(items)]),
        slots=lists(slots),
        place_cell=int32(cells),
        cells=lists([draw(st.permutations(members)) for members in shared]),
        neighbours=lists([draw(st.lists(st.integers(0, items - 1), max_size=4)) for _ in range(places)]),
    )
    order = st.lists(st.integers(0, items - 1), max_size=6)
    choice = st.lists(st.integers(-1, 2), min_size=2, max_size=2)
    kind = st.sampled_from(["sweep", "worklist"])
    return statics, held, graph, draw(st.lists(st.tuples(kind, order, choice), max_size=4))


@drawing(80)
@given(agendas())
def test_core_and_reference_take_the_same_turns(case: Any) -> None:
    static_facts, held, graph, plan = case
    outcomes, contents = [], []
    for backend in ("core", "reference"):
        ran = agenda(backend)
        statics = [ran.static(facts) for facts in static_facts]
        passes = [
            Pass(kind, kind, int32(items), int32([-1 if s < 0 else statics[s] for s in choice]))
            for kind, items, choice in plan
        ]
        outcomes.append(ran.run(graph, int32([ran.content(facts) for facts in held]), passes))
        contents.append([ran.facts(c) for c in outcomes[-1].contents.tolist()])
    same(*outcomes)
    assert contents[0] == contents[1]


def test_the_reference_runs_over_any_solver() -> None:
    ran = ReferenceAgenda(PROGRAM.solver(SHARED, backend="core"), STATE, "changed")
    assert ran.explain(ran.static({"flow": [(0, 1)]}), [ran.content({"has": [(2,)]}), 0], ["gains"]) == {
        "gains": [(1, 2)]
    }
