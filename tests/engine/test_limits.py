"""Limits on what an evaluation takes, in both evaluators; other threads and Ctrl-C meanwhile."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest
from shardlog.engine import EngineError, Limits, load
from shardlog.engine.agenda.agenda import Agenda

ENDLESS = ".decl n(x:number)\nn(0).\nn(x + 1) :- n(x).\n.output n\n"
GROWING = '.decl s(x:symbol)\ns("ab").\ns(cat(x, x)) :- s(x).\n.output s\n'
WIDE = """
.decl n(x:number)
n(x) :- x = range(0, 1000000000000).
.output n
"""
LONG = """
.decl s(x:symbol)
s("ab").
s(cat(x, x)) :- s(x), strlen(x) < 1000000.
.decl n(x:number)
n(y) :- s(x), strlen(x) > 1000000, y = range(0, 50000), strlen(cat(x, "c")) > 0.
.output n
"""
CLASSES = """
.decl same(x:number, y:number) eqrel
same(x, x + 1) :- x = range(0, 70000).
.output same
"""
GIVEN = ".decl same(x:number, y:number) eqrel\n.input same\n.output same\n"
SHARED = """
.type key <: number
.decl known(x:number)
.decl n(k:key, x:number)
.input known, n
n(k, x + 1) :- n(k, x).
.output n
"""


@pytest.mark.parametrize(
    ("text", "limits", "message"),
    [
        (ENDLESS, Limits(tuples=1000), "t.dl:3: more than 1000 tuples; bound the recursion, or raise the "
         "limit\n  1001 tuples by t.dl:3"),
        (ENDLESS, Limits(seconds=0.05), "t.dl:3: more than 0.05 seconds"),
        (ENDLESS, Limits(memory=2 << 20), "t.dl:3: more than 2 MiB of memory"),
        (GROWING, Limits(memory=2 << 20), "t.dl:3: more than 2 MiB of memory"),
        (WIDE, Limits(tuples=1000), "t.dl:3: more than 1000 tuples"),
        (WIDE, Limits(seconds=0.05), "t.dl:3: more than 0.05 seconds"),
        (LONG, Limits(seconds=0.2), "t.dl:6: more than 0.2 seconds"),
    ],
)  # fmt: skip
def test_a_limit_names_the_rule(backend: Any, text: str, limits: Limits, message: str) -> None:
    with pytest.raises(EngineError) as error:
        load(texts={"t.dl": text}).evaluate({}, backend=backend, limits=limits)
    assert str(error.value).startswith(message)


@pytest.mark.core
@pytest.mark.parametrize(
    "limits", [Limits(tuples=10_000), Limits(memory=4 << 20), Limits(seconds=0.05)], ids=str
)
def test_an_equivalence_is_closed_under_limits(limits: Limits) -> None:
    """Over tuples that a rule gives and over facts, both in the program and from outside."""
    pairs = [(x, x + 1) for x in range(70_000)]
    facts = "".join(f"same({x}, {y}).\n" for x, y in pairs[:20_000])
    for text, given in ((CLASSES, []), (GIVEN, pairs), (GIVEN + facts, [])):
        with pytest.raises(EngineError, match="limit"):
            load(texts={"t.dl": text}).evaluate({"same": given}, limits=limits)


def test_an_equivalence_of_facts_says_so(backend: Any) -> None:
    with pytest.raises(EngineError, match="the facts of `same`: more than 1000 tuples"):
        given = {"same": [(x, x + 1) for x in range(100)]}
        load(texts={"t.dl": GIVEN}).evaluate(given, backend=backend, limits=Limits(tuples=1000))


def test_the_rules_that_made_most_are_named(backend: Any) -> None:
    text = """
        .decl n(x:number)
        n(x) :- x = range(0, 500).
        .decl pair(x:number, y:number)
        pair(x, y) :- n(x), n(y).
        .output pair
    """
    with pytest.raises(EngineError, match=r"t\.dl:5: .*\n  501 tuples by t\.dl:5\n  500 tuples by t\.dl:3$"):
        load(texts={"t.dl": text}).evaluate({}, backend=backend, limits=Limits(tuples=1000))


def test_what_is_within_the_limits_is_not_touched(backend: Any) -> None:
    text = ".decl n(x:number)\nn(0).\nn(x + 1) :- n(x), x < 9.\n.output n\n"
    limits = Limits(tuples=9, memory=1 << 20, seconds=100)
    assert len(load(texts={"t.dl": text}).evaluate({}, backend=backend, limits=limits)["n"]) == 10


def test_a_solver_keeps_to_the_limits_for_each_key(backend: Any) -> None:
    solver = load(key="key", texts={"t.dl": SHARED}).solver({"known": []}, backend, Limits(tuples=1000))
    assert solver.solve({}) == {"n": []}
    for _ in range(2):
        with pytest.raises(EngineError, match="more than 1000 tuples"):
            solver.solve({"n": [(0,)]})
    assert solver.solve({}) == {"n": []}


def test_the_agenda_keeps_to_the_limits_of_its_solver(backend: Any) -> None:
    text = """
        .type item <: number
        .decl has(o:item, t:number, x:number)
        .decl becomes(o:item, t:number, x:number)
        .decl changed(o:item, t:number)
        .input has
        becomes(o, t, x) :- has(o, t, x).
        becomes(o, t, x + 1) :- becomes(o, t, x).
        changed(o, t) :- has(o, t, _).
        .output becomes, changed
    """
    solver = load(key="item", texts={"t.dl": text}).solver({}, backend, Limits(tuples=1000))
    agenda = Agenda(solver, {"has": "becomes"}, "changed")
    content = agenda.content({"has": [(1,)]})
    with pytest.raises(EngineError, match="more than 1000 tuples"):
        agenda.explain(agenda.static({}), [content], ["becomes"])


@pytest.mark.parametrize(
    "limit", [{"tuples": -1}, {"memory": 1.5}, {"seconds": float("nan")}, {"threads": 1 << 63}]
)
def test_what_is_no_limit(limit: dict[str, Any]) -> None:
    ((name, value),) = limit.items()
    with pytest.raises(EngineError, match=f"the limit {name} is {value}; expected a number from 0 on"):
        Limits(**limit)


def test_limits_are_read_from_text() -> None:
    assert Limits(tuples=5).changed("memory=2G, seconds=1.5") == Limits(5, 2 << 30, 1.5)
    assert Limits(5, 6, 7).changed("tuples=none,memory=16k") == Limits(None, 16 << 10, 7)
    for wrong in ("tuple=5", "tuples", "tuples=many", "seconds=-1", "memory=1e9"):
        with pytest.raises(EngineError, match="cannot read the limit"):
            Limits().changed(wrong)


@pytest.mark.parametrize("text", [ENDLESS, WIDE, CLASSES])
def test_ctrl_c_stops_an_evaluation(text: str, backend: Any) -> None:
    program = load(texts={"t.dl": text})
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)  # a Ctrl-C that comes by itself
    signal.setitimer(signal.ITIMER_REAL, 0.2, 1)  # again, for one in a callback of the collector is lost
    try:
        with pytest.raises(KeyboardInterrupt):
            program.evaluate({}, backend=backend)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.core
@pytest.mark.parametrize("keyed", [False, True])
def test_other_threads_run_meanwhile(keyed: bool) -> None:
    """They count while rules run; a solver of single keys lets them in now and then."""
    count, counts, done = 0, list[int](), threading.Event()

    def work() -> None:
        nonlocal count
        while not done.is_set():
            count += 1

    if keyed:
        program = load(key="key", texts={"t.dl": SHARED})
        solver = program.solver({}, limits=Limits(seconds=0.5))
    else:
        program = load(texts={"t.dl": ENDLESS})
    thread = threading.Thread(target=work)
    thread.start()
    try:
        with pytest.raises(EngineError, match=r"more than [\d.]+ seconds"):
            counts.append(count)
            if keyed:
                solver.solve({"n": [(0,)]})
            else:
                program.evaluate({}, limits=Limits(seconds=0.5))
        counts.append(count)
    finally:
        done.set()
        thread.join()
    assert counts[1] > counts[0] + 10_000


def test_two_threads_share_a_solver() -> None:
    bounded = SHARED.replace("n(k, x).", "n(k, x), x < 2000.")
    solver = load(key="key", texts={"t.dl": bounded}).solver({})
    answers: list[int] = []

    def work() -> None:
        answers.extend(len(solver.solve({"n": [(0,)]})["n"]) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [2001] * 80


@pytest.mark.core
def test_deep_and_wide_records_are_refused() -> None:
    """Records nest as they like inside of an evaluation; Python gets none that it could not print."""
    text = ".type L = [a:L, b:L]\n.decl l(n:number, x:L)\nl(0, nil).\nl(n + 1, [{}, x]) :- l(n, x), n < {}.\n"
    deep = load(texts={"t.dl": text.format("nil", 10_000) + ".output l\n"})
    with pytest.raises(EngineError, match="a record that is nested more than 500 levels deep"):
        deep.evaluate({})
    wide = load(texts={"t.dl": text.format("x", 100) + ".output l\n"})
    with pytest.raises(EngineError, match="a value that holds more than 1000000 records"):
        wide.evaluate({})
    count = ".decl c(n:number)\nc(n) :- n = count : { l(_, _) }.\n.output c\n"
    assert load(texts={"t.dl": text.format("nil", 100_000) + count}).evaluate({}) == {"c": [(100_001,)]}


@pytest.mark.core
def test_deep_records_are_chosen_in_their_order() -> None:
    """Of lists that differ only at their ends the first is chosen: [1, ... 1, 0] before [1, ... 1, 1]."""
    text = """
        .type L = [head:number, tail:L]
        .decl list(n:number, x:L, end:number)
        list(0, [end, nil], end) :- end = range(0, 2).
        list(n + 1, [1, x], end) :- list(n, x, end), n < 5000.
        .decl chosen(n:number, x:L, end:number) choice-domain n
        chosen(n, x, end) :- list(n, x, end).
        .decl first(x:L, n:number) choice-domain (n)
        first(x, 0) :- list(_, x, _).
        .decl answer(name:symbol, n:number)
        answer("ends with 0", n) :- n = count : { chosen(_, _, 0) }.
        answer("ends with 1", n) :- n = count : { chosen(_, _, 1) }.
        answer("first", n) :- first([n, nil], _).
        .output answer
    """
    answer = load(texts={"t.dl": text}).evaluate({})["answer"]
    assert answer == [("ends with 0", 5001), ("ends with 1", 0), ("first", 0)]
