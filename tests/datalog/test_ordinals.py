"""The numbers of symbols, as they appear in texts and in facts, however these come and what is known then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardlog.datalog import Program
from shardlog.engine import load

from ..support.drawing import drawing

TEXTS = ["d", "b", "c", "a"]
PLACES = {"root": 0, "d": 1, "b": 2, "c": 3, "a": 4}
# Symbols that are made here may come as facts later, and be asked for by queries before.
SOURCE = """
.decl edge(x: symbol, y: symbol)
.decl label(x: symbol, n: number)
.decl box(b: Box)
.type Box = [left: symbol, n: number, right: symbol]
.decl node(x: symbol)
node("root").
node(x) :- edge(x, _).
node(y) :- edge(_, y).
node(x) :- box([x, _, _]).
node(cat(x, y)) :- edge(x, y), strlen(x) + strlen(y) < 4.
.decl place(x: symbol, n: number)
place(x, ord(x)) :- node(x).
.decl leader(x: symbol, n: number) choice-domain n
leader(x, n) :- node(x), label(_, n).
.decl earlier(x: symbol, y: symbol)
earlier(x, y) :- edge(x, y), ord(x) < ord(y).
earlier(x, z) :- earlier(x, y), edge(y, z), ord(y) < ord(z).
.decl tree(x: symbol, y: symbol) choice-domain y
tree("root", x) :- node(x).
tree(x, y) :- tree(_, x), earlier(x, y).
.output place
"""


def forms() -> dict[str, Callable[[list[str], list[str]], Any]]:
    """How the same pairs of texts may come."""
    import pandas
    import pyarrow

    def coded(texts: list[str]) -> Any:
        return pyarrow.DictionaryArray.from_arrays([["z", *sorted(texts)].index(x) for x in texts],
                                                   ["z", *sorted(texts)])  # fmt: skip

    return {
        "tuples": lambda x, y: zip(x, y, strict=True),
        "objects": lambda x, y: np.array([x, y], object).T,
        "texts": lambda x, y: np.array([x, y]).T,
        "pandas": lambda x, y: pandas.DataFrame({"x": x, "y": y}),
        "categories": lambda x, y: pandas.DataFrame({"x": pandas.Categorical(x), "y": pandas.Categorical(y)}),
        "arrow": lambda x, y: pyarrow.table({"x": x, "y": y}),
        "dictionary": lambda x, y: pyarrow.table({"x": coded(x), "y": coded(y)}),
    }


@pytest.mark.parametrize("form", sorted(forms()))
def test_it_does_not_matter_how_facts_come(form: str, backend: Any) -> None:
    program = Program(SOURCE, backend=backend)
    program.add("edge", forms()[form](["d", "c"], ["b", "a"]))
    program.run()
    assert {x: n for x, n in program.rows("place") if x in PLACES} == PLACES
    assert program.rows("leader") == []


def test_files_are_read_relation_by_relation(tmp_path: Any, backend: Any) -> None:
    (tmp_path / "edge.facts").write_text("d\tb\nc\ta\n")
    (tmp_path / "label.facts").write_text("f\t1\n")
    program = Program(SOURCE + ".input label\n.input edge\n", backend=backend)
    program.read_inputs(tmp_path)
    program.run()
    found = {x: n for x, n in program.rows("place") if x in PLACES}
    assert found == {"root": 0, "d": 2, "b": 3, "c": 4, "a": 5}
    assert program.rows("leader") == [("root", 1)]


def test_what_a_rule_has_made_gets_a_number_once_it_is_a_fact(backend: Any) -> None:
    program = Program(SOURCE, backend=backend)
    program.add("edge", [("a", "b")])
    program.run()
    (made,) = (n for x, n in program.rows("place") if x == "ab")
    assert made >= 1 << 62
    assert program.query('n = ord("ab")').tolist() == [(made,)]
    program.add("edge", [("ab", "b")])
    assert program.query('n = ord("ab")').tolist() == [(3,)]
    program.run()
    assert {x: n for x, n in program.rows("place") if n < 1 << 62} == {"root": 0, "a": 1, "b": 2, "ab": 3}


def test_a_query_may_ask_where_the_program_does_not(backend: Any) -> None:
    program = Program(".decl name(x: symbol, y: symbol)", backend=backend)
    program.add("name", [("b", "a"), ("c", "b")])
    program.run()
    assert program.query("name(x, y), n = ord(x), m = ord(y)").tolist() == [
        ("b", "a", 0, 1),
        ("c", "b", 2, 0),
    ]


def test_proofs_know_the_numbers(backend: Any) -> None:
    program = Program(SOURCE, backend=backend)
    program.add("edge", [("d", "b"), ("b", "c")])
    program.run()
    assert program.rows("earlier") == [("b", "c"), ("d", "b"), ("d", "c")]
    assert program.explain('earlier("d", "c")').height == 2
    assert program.explain('place("b", 2)').height == 2


def test_what_stands_for_no_field_of_a_branch_does_not_appear_in_the_text(backend: Any) -> None:
    text = """
        .type T = A {n: number} | B {x: symbol}
        .decl t(t: T)
        t($A(1)).
        .decl s(x: symbol)
        .decl place(x: symbol, n: number)
        place(x, ord(x)) :- s(x).
        .output place
    """
    answers = load(texts={"p.dl": text}).evaluate({"s": [("b",), ("",), ("a",)]}, backend=backend)
    assert answers == {"place": [("", 1), ("a", 2), ("b", 0)]}
    program = Program(text, backend=backend)
    program.add("t", [(("B", "b"),), (("A", 2),)])
    program.add("s", [("",), ("b",)])
    program.run()
    assert program.rows("place") == [("", 1), ("b", 0)]


def test_keys_before_do_not_matter(backend: Any) -> None:
    text = """
        .type key <: number
        .decl name(k: key, x: symbol)
        .decl place(k: key, x: symbol, n: number)
        place(k, x, ord(x)) :- name(k, x).
        .decl one(k: key, x: symbol) choice-domain k
        one(k, x) :- name(k, x).
        .output place, one
    """
    facts = {"name": [("a",), ("b",)]}
    solver = load(texts={"p.dl": text}, key="key").solver({}, backend)
    first = solver.solve(facts)
    assert [n >= 1 << 62 for _, n in first["place"]] == [True, True]
    solver.solve({"name": [("c",), ("b",)]})
    assert (
        solver.solve(facts) == load(texts={"p.dl": text}, key="key").solver({}, backend).solve(facts) == first
    )


NAMES = st.sampled_from(["a", "b", "ab", "ba", "aab", "root", "aroot"])
ADDED = st.one_of(
    st.tuples(st.just("edge"), st.lists(st.tuples(NAMES, NAMES), max_size=3)),
    st.tuples(st.just("label"), st.lists(st.tuples(NAMES, st.integers(0, 2)), max_size=2)),
    st.tuples(
        st.just("box"), st.lists(st.tuples(st.none() | st.tuples(NAMES, st.just(1), NAMES)), max_size=2)
    ),
    st.tuples(st.just("node"), st.lists(st.tuples(NAMES), max_size=2)),
    st.tuples(st.just("tree"), st.lists(st.tuples(NAMES, NAMES), max_size=2)),
)
ASKED = st.sampled_from([(), ("place",), ("leader", "earlier")])
QUERIES = st.sampled_from(
    [None, "place(x, n)", 'tree("a", x)', 'node(x), n = ord(cat(x, "b"))', "leader(x, 1)"]
)


@pytest.mark.core
@given(st.lists(st.tuples(st.lists(ADDED, max_size=3), QUERIES, ASKED), max_size=4))
@drawing(40)
def test_going_on_gives_what_starting_anew_gives(steps: list[tuple[Any, Any, Any]]) -> None:
    going, anew = Program(SOURCE, backend="core"), Program(SOURCE, backend="reference")
    for added, query, asked in steps:
        for name, rows in added:
            going.add(name, rows)
            anew.add(name, rows)
        if query is not None:
            assert going.query(query).tolist() == anew.query(query).tolist()
        going.run(*asked)
        anew.run()
        names = asked or list(going.relations)
        assert {n: going.rows(n) for n in names} == {n: anew.rows(n) for n in names}
