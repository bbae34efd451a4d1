"""The compiled evaluator beyond answers: arrays, limits, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from shardlog.engine import EngineError, Limits, LoadedProgram, load
from shardlog.engine.evaluate.program import Backend

from ..support import tools

pytestmark = pytest.mark.core
core = tools.core()

PATHS = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
.decl name(x:number, text:symbol)
.decl weight(x:unsigned, y:float)
.type Pair = [a:number, b:symbol]
.decl pair(p:Pair)
.input edge, name, weight, pair
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.output path, name
"""


def program(text: str = PATHS) -> LoadedProgram:
    return load(texts={"paths.dl": text})


def compiled(text: str = PATHS) -> Any:
    return core.Program(program(text).plan.to_json())


@pytest.mark.parametrize("order", ["C", "F"])
def test_facts_may_be_arrays(order: Any) -> None:
    edges = np.array([[1, 2], [2, 3]], order=order)
    assert compiled().evaluate({"edge": edges}, ["path"]) == {"path": [(1, 2), (1, 3), (2, 3)]}


def test_answers_may_be_arrays() -> None:
    arrays = compiled().evaluate_arrays({"edge": [(2, 3), (1, 2)]}, ["path", "edge"])
    assert arrays["path"].dtype == np.int64
    assert arrays["path"].tolist() == [[1, 2], [1, 3], [2, 3]]
    assert arrays["edge"].tolist() == [[1, 2], [2, 3]]


@pytest.mark.parametrize("backend", ["core", "reference"])
def test_answers_of_a_program_may_be_arrays(backend: Backend) -> None:
    numbers = program(
        ".decl n(x: number, y: number)\n.input n\n.decl m(y: number)\nm(y) :- n(_, y).\n.output m"
    )
    assert numbers.evaluate_arrays({"n": [(1, 3), (2, 2)]}, backend)["m"].tolist() == [[2], [3]]
    assert numbers.evaluate_arrays({}, backend)["m"].shape == (0, 1)


def test_an_empty_answer_has_its_columns() -> None:
    assert compiled().evaluate_arrays({}, ["path"])["path"].shape == (0, 2)


def test_symbols_are_sorted_by_their_text() -> None:
    facts = {"name": [(1, "b"), (1, "a"), (0, "z"), (1, "ä")]}
    assert compiled().evaluate(facts, ["name"]) == {"name": [(0, "z"), (1, "a"), (1, "b"), (1, "ä")]}


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"edg": [(1, 2)]}, "there is no relation `edg`"),
        ({"edge": [(1, 2), (1,)]}, "`edge`, fact 1: expected a tuple of 2 values, found "),
        ({"edge": [(1, "2")]}, "`edge`, fact 0, column `y`: expected a number of 64 bits, found '2'"),
        ({"edge": [(1 << 63, 2)]}, "`edge`, fact 0, column `x`: expected a number of 64 bits"),
        ({"name": [(1, 2)]}, "`name`, fact 0, column `text`: expected a text, found 2"),
        ({"weight": [(-1, 2.0)]}, "`weight`, fact 0, column `x`: expected an unsigned number"),
        ({"pair": [((1,),)]}, "`pair`, fact 0, column `p`: expected a tuple of 2 values"),
        ({"edge": np.zeros((4, 3), np.int64)}, "`edge`, fact 0: expected 2 values, found 3"),
        ({"name": np.zeros((4, 2), np.int64)}, "`name`: column `text` is no number"),
    ],
)
def test_facts_that_do_not_fit(facts: Any, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        compiled().evaluate(facts)


def test_only_numbers_make_an_array() -> None:
    with pytest.raises(EngineError, match="`name` is no array: column `text` is no number"):
        compiled().evaluate_arrays({}, ["name"])


def test_a_division_by_zero_names_the_rule() -> None:
    text = ".decl n(x:number)\n.input n\n.decl q(x:number)\nq(1 / x) :- n(x).\n.output q\n"
    with pytest.raises(EngineError, match=r"paths\.dl:4: division by zero"):
        compiled(text).evaluate({"n": [(0,)]})


def test_a_solver_forgets_the_last_key() -> None:
    text = (
        ".type key <: number\n.decl edge(k:key, x:number)\n.decl known(x:number)\n"
        ".decl both(k:key, x:number)\n.input edge, known\n"
        "both(k, x) :- edge(k, x), known(x).\n.output both\n"
    )
    keyed = load(texts={"keyed.dl": text}, key="key")
    solver = core.Program(keyed.plan.to_json()).solver({"known": [(n,) for n in range(100)]})
    for count in (40, 0, 3):
        facts = {"edge": [(2 * n,) for n in range(count)]}
        assert solver.solve(facts) == {"both": facts["edge"]}
    with pytest.raises(EngineError, match="`known` is shared by all keys"):
        solver.solve({"known": [(1,)]})


JOINS = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
.decl near(x:number, y:number, z:number)
.input edge
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z), x != z.
near(x, y, z) :- path(x, y), edge(y, z), !edge(x, z).
.output path, near
"""


@pytest.mark.parametrize("threads", [2, 3])
def test_any_number_of_threads_gives_the_same(threads: int) -> None:
    """The rounds too, in which tuples are found; words are narrow in one graph, wide in another, and both in
    the third."""
    for widened in (1 << 60, 1, 50):
        nodes = [(i % 300, i * 7 % 211) for i in range(900)]
        edges = np.array([[n if n % widened else n << 40 for n in edge] for edge in nodes])
        stores = [compiled(JOINS).store() for _ in range(2)]
        for store, limits in zip(stores, (Limits(), Limits(threads=threads)), strict=True):
            store.add("edge", edges)
            store.evaluate(["path", "near"], limits)
        one, several = stores
        assert one.count("path") > 20_000
        for name in ("path", "near"):
            assert one.rows(name) == several.rows(name)
            (columns, rounds), (others, their_rounds) = one.found(name), several.found(name)
            assert np.array_equal(columns, others) and np.array_equal(rounds, their_rounds)


def test_what_is_found_very_often_is_there_once() -> None:
    text = (
        ".decl from(x:number, y:number)\n.decl to(y:number, z:number)\n.decl both(x:number, z:number)\n"
        ".input from, to\n.output both\nboth(x, z) :- from(x, y), to(y, z).\n"
    )
    facts = {"from": np.mgrid[:200, :200].reshape(2, -1).T, "to": np.mgrid[:200, :60].reshape(2, -1).T}
    expected = np.mgrid[:200, :60].reshape(2, -1)
    for threads in (1, 2):
        store = compiled(text).store()
        for name, rows in facts.items():
            store.add(name, rows)
        store.evaluate(["both"], Limits(threads=threads))
        assert np.array_equal(store.found("both")[0], expected)  # in the order in which one thread finds them


def test_rows_that_only_seem_to_have_many_partners_are_all_looked_at() -> None:
    """Most of `to` has a key that no row of `from` has."""
    text = (
        ".decl from(x:number, y:number)\n.decl to(y:number, z:number)\n.decl both(x:number, z:number)\n"
        ".input from, to\n.output both\nboth(x, z) :- from(x, y), to(y, z).\n"
    )
    rows = np.arange(5000)
    pairs = np.stack([rows, rows], 1)
    crowd = np.stack([np.full(50_000, -1), np.arange(50_000)], 1)
    store = compiled(text).store()
    store.add("from", pairs)
    store.add("to", np.concatenate([crowd, pairs[::7]]))
    store.evaluate(["both"], Limits(threads=2))
    assert np.array_equal(store.found("both")[0], pairs[::7].T)


def test_limits_hold_on_several_threads() -> None:
    edges = np.array([(i % 300, i * 7 % 211) for i in range(900)])
    with pytest.raises(EngineError, match="more than 30000 tuples"):
        compiled(JOINS).evaluate({"edge": edges}, ["path", "near"], Limits(tuples=30_000, threads=2))
