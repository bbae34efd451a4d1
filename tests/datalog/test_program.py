"""Datalog from Python: facts in, relations out, more facts, limits."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardlog.datalog import DatalogError, EngineError, Limits, Program

from ..support.drawing import drawing
from ..support.paths import PATHS

WIDE, NULL = "numbers of 64 bits", "a missing value"
SYMBOLS = ".decl name(id: unsigned, text: symbol, weight: float)\n"
NAMES = [(0, "a", 0.5), (1, "b", -0.0), (2**64 - 1, "a", 2.0)]


def test_runs_over_an_array_and_gives_an_array(backend: Any) -> None:
    program = Program(PATHS, backend=backend)
    program.add("edge", np.array([[1, 2], [2, 3]]))
    program.run()
    path = program.relation("path")
    assert path.dtype == [("x", np.int64), ("y", np.int64)]
    assert path.tolist() == program.rows("path") == [(1, 2), (1, 3), (2, 3)]
    assert program.count("path") == 3


def test_a_program_can_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "paths.dl"
    file.write_text(PATHS)
    assert list(Program(file).relations) == list(Program(str(file)).relations) == ["edge", "path"]


@pytest.mark.parametrize("width", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_every_integer_width_is_a_number(width: str, backend: Any) -> None:
    program = Program(PATHS, backend=backend)
    program.add("edge", np.array([[0, 1]], width))
    assert program.rows("edge") == [(0, 1)]


def test_columns_may_be_strided_and_swapped(backend: Any) -> None:
    program = Program(PATHS, backend=backend)
    program.add("edge", np.arange(8, dtype=">i4").reshape(4, 2)[::2, ::-1])
    assert program.rows("edge") == [(1, 0), (5, 4)]


def tables() -> dict[str, Any]:
    """The same facts in all forms."""
    import pandas
    import pyarrow

    ids, texts, weights = (list(column) for column in zip(*NAMES, strict=True))
    structured = np.empty(3, [("i", np.uint64), ("t", "U1"), ("w", np.float32)])
    for row, name in enumerate(NAMES):
        structured[row] = name
    coded = pyarrow.array(texts).dictionary_encode()
    unsigned = np.array(ids, np.uint64)
    return {
        "tuples": iter(NAMES),
        "structured": structured,
        "objects": np.array(NAMES, object),
        "pandas": pandas.DataFrame({"i": unsigned, "t": texts, "w": weights}),
        "categories": pandas.DataFrame({"i": unsigned, "t": pandas.Categorical(texts), "w": weights}),
        "arrow": pyarrow.table({"i": unsigned, "t": texts, "w": weights}),
        "dictionary": pyarrow.table({"i": unsigned, "t": coded, "w": weights}),
        "chunks": pyarrow.table(
            {
                "i": unsigned,
                "t": pyarrow.chunked_array([coded[:1], coded[1:]]),
                "w": weights,
            }
        ),
        "batch": pyarrow.record_batch({"i": unsigned, "t": pyarrow.array(texts), "w": weights}),
    }


@pytest.mark.parametrize("form", sorted(tables()))
def test_facts_come_in_every_form(form: str, backend: Any) -> None:
    program = Program(SYMBOLS, backend=backend)
    program.add("name", tables()[form])
    assert program.rows("name") == [(0, "a", 0.5), (1, "b", 0.0), (2**64 - 1, "a", 2.0)]
    assert program.relation("name").tolist() == program.rows("name")
    assert program.table("name").to_pydict() == {
        "id": [0, 1, 2**64 - 1],
        "text": ["a", "b", "a"],
        "weight": [0.5, 0.0, 2.0],
    }


def columns() -> list[tuple[str, Any, list[Any]]]:
    """The type of a column, the column by itself in a form, and its values."""
    import pandas
    import pyarrow

    large = pyarrow.array([2**63, 1], pyarrow.uint64())
    return [
        ("number", np.array([2, 1]), [1, 2]),
        ("number", pandas.Series([2, 1]), [1, 2]),
        ("symbol", pandas.Series(["b", "a"], dtype="category"), ["a", "b"]),
        ("number", pyarrow.array([2, 1]), [1, 2]),
        ("symbol", pyarrow.chunked_array([["b"], ["a"]]), ["a", "b"]),
        ("unsigned", large.dictionary_encode(), [1, 2**63]),
        ("float", pyarrow.array([Decimal("0.5")]), [0.5]),
    ]


@pytest.mark.parametrize(("kind", "column", "values"), columns())
def test_a_column_by_itself(kind: str, column: Any, values: list[Any], backend: Any) -> None:
    program = Program(f".decl r(x: {kind})\n", backend=backend)
    program.add("r", column)
    assert program.rows("r") == [(value,) for value in values]


@pytest.mark.parametrize(
    "facts",
    [["ab"], [("\ud800", "b")], np.array([["\ud800", "b"]]), np.array([["\ud800", "b"]], object)],
)
def test_no_text_is_a_row_and_half_a_character_no_text(facts: Any, backend: Any) -> None:
    program = Program(".decl r(x: symbol, y: symbol)\n", backend=backend)
    with pytest.raises(EngineError, match=r"`r`, .*: expected a t.*, found '(ab|.ud800)'"):
        program.add("r", facts)
    assert program.rows("r") == []


def test_texts_and_floats_are_pythons_own(backend: Any) -> None:
    program = Program(".decl r(x: symbol, y: float)\n", backend=backend)
    program.add("r", [(np.str_("a"), Decimal("0.5"))])
    ((text, number),) = program.rows("r")
    assert (type(text), type(number)) == (str, float)
    for wrong in (b"3", "3", 10**400):
        with pytest.raises(EngineError, match="fact 0, column `y`: expected a float, found"):
            program.add("r", [("a", wrong)])


def test_what_an_arrow_table_gives_can_be_added_again(backend: Any) -> None:
    program, other = Program(SYMBOLS, backend=backend), Program(SYMBOLS, backend=backend)
    program.add("name", NAMES)
    other.add("name", program.table("name"))
    other.add("name", program.relation("name"))
    assert other.rows("name") == program.rows("name")


def test_records_are_tuples_and_texts_in_arrow(backend: Any) -> None:
    program = Program(
        ".type List = [head: symbol, tail: List]\n.decl list(x: List, n: number)", backend=backend
    )
    rows = [(None, 0), (("a", None), 1), (("b", ("a", None)), 2)]
    program.add("list", np.array([rows[2], rows[0]], [("x", object), ("n", int)]))
    program.add("list", rows)
    assert program.rows("list") == program.relation("list").tolist() == rows
    assert program.table("list")["x"].to_pylist() == ["nil", "[a, nil]", "[b, [a, nil]]"]


def test_branches_are_tuples_of_a_name_and_fields(backend: Any) -> None:
    text = ".type Tree = Leaf {} | Node {left: Tree, n: number}\n.decl tree(x: Tree)\n.decl left(x: Tree)\n"
    program = Program(text + "left(x) :- tree($Node(x, _)).", backend=backend)
    program.add("tree", [(("Node", ("Leaf",), 1),), (("Node", ("Node", ("Leaf",), 2), 3),)])
    program.run()
    assert program.rows("left") == [(("Leaf",),), (("Node", ("Leaf",), 2),)]
    assert program.relation("left").tolist() == program.rows("left")
    assert program.table("left")["x"].to_pylist() == ["$Leaf", "$Node($Leaf, 2)"]
    with pytest.raises(EngineError, match="is no `Tree`; did you mean `Leaf`"):
        program.add("tree", [(("Leav",),)])
    wrong = [None, 3, "Leaf", (), ([1],), ("Node", 1), {"Leaf": 1}]
    for value in wrong:
        with pytest.raises(EngineError, match=f"{re.escape(repr(value))} is no `Tree`$"):
            program.add("tree", [(value,)])
    with pytest.raises(EngineError, match="fact 0: expected a tuple of 1 value, found 3"):
        program.add("tree", [3])
    assert len(program.rows("tree")) == 2


@pytest.mark.parametrize("kind", ["List", "Tree"])
def test_records_of_many_levels(kind: str, backend: Any) -> None:
    types = ".type List = [head: symbol, tail: List]\n.type Tree = Leaf {} | Node {left: Tree, n: number}\n"
    program = Program(f"{types}.decl r(x: {kind})\n.decl s(x: {kind})\ns(x) :- r(x).", backend=backend)
    value: Any = None if kind == "List" else ("Leaf",)
    for _ in range(499):
        value = ("a", value) if kind == "List" else ("Node", value, 1)
    program.add("r", [(value,)])
    program.run()
    assert program.rows("s") == [(value,)]
    (text,) = program.table("s")["x"].to_pylist()
    assert str(program.explain(f"s({text})")).startswith("s(")
    for _ in range(600):
        value = ("a", value) if kind == "List" else ("Node", value, 1)
    with pytest.raises(EngineError, match="a record that is nested more than 500 levels deep"):
        program.add("r", [(value,)])
    with pytest.raises(EngineError, match="a record of at most 500 levels"):
        program.explain(f"s({text.replace('nil', text * 2).replace('$Leaf', text * 2)})")


@pytest.mark.core
def test_records_that_rules_nest_too_deeply_are_refused() -> None:
    text = ".type L = [n:number, l:L]\n.decl l(n:number, x:L)\nl(0, nil).\n"
    program = Program(text + "l(n + 1, [1, x]) :- l(n, x), n < 5000.")
    program.run()
    assert program.count("l") == 5001
    for read in (program.rows, program.relation, program.table, lambda name: program.query(f"{name}(n, x)")):
        with pytest.raises(EngineError, match="a record that is nested more than 500 levels deep"):
            read("l")


def test_a_relation_without_columns(backend: Any) -> None:
    program = Program(".decl yes()\n.decl no()\nno() :- yes().", backend=backend)
    program.run()
    assert (program.count("no"), program.relation("no").shape) == (0, (0,))
    program.add("yes", [()])
    program.run()
    assert (program.count("no"), program.relation("no").shape) == (1, (1,))


class Unreadable:
    """A table of a type that pyarrow does not know."""

    def __arrow_c_stream__(self, requested: Any = None) -> Any:
        import pyarrow

        raise pyarrow.ArrowInvalid("it is none")


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (np.array([[1.5, 2]]), "`edge`, column `x`: expected numbers of 64 bits, found float64"),
        (np.array([[2**63, 2]], np.uint64), f"`edge`, column `x`: expected {WIDE}, found {2**63}"),
        (np.array([[1, 2, 3]]), "`edge`: expected 2 columns, found 3"),
        (np.array([1, 2]), "`edge`: expected an array of shape (tuples, 2), found one of shape (2,)"),
        (np.array([["a", "b"]]), "`edge`, column `x`: expected numbers of 64 bits, found <U1"),
        (np.ma.masked_equal([[1, 2]], 1), f"`edge`, column `x`: expected {WIDE}, found {NULL}"),
        (np.zeros(1, "i8, 2i8"), f"`edge`, column `y`: expected {WIDE}, found arrays of shape (2,)"),
        (np.zeros((1, 1), "i8, i8"), "`edge`: expected 2 columns, found 1"),
        (np.array([[1, 2**63]], object), f"`edge`, column `y`: expected {WIDE}, found {2**63}"),
        ([np.array([1, 2])], "`edge`, fact 0: expected a tuple of 2 values, found array([1, 2])"),
        ([(1, 2), b"ab"], "`edge`, fact 1: expected a tuple of 2 values, found b'ab'"),
        (Unreadable(), "`edge`: Arrow cannot read the table: it is none"),
        ([(1, 2), (3, "x")], "`edge`, fact 1, column `y`: expected a number of 64 bits, found 'x'"),
        ("edge.csv", "`edge`: expected tuples or a table, found 'edge.csv'"),
        (7, "`edge`: expected tuples or a table, found 7"),
    ],
)  # fmt: skip
def test_facts_that_do_not_fit(facts: Any, said: str, backend: Any) -> None:
    program = Program(PATHS, backend=backend)
    with pytest.raises(EngineError) as error:
        program.add("edge", facts)
    assert str(error.value) == said
    assert program.rows("edge") == []


def test_an_unknown_relation_and_a_program_with_errors() -> None:
    with pytest.raises(EngineError, match="unknown relation `pth`; did you mean `path`"):
        Program(PATHS).relation("pth")
    with pytest.raises(DatalogError, match="program:1:1"):
        Program("path(x) :- edge(x).\n")


def test_limits_hold_for_each_run_and_the_program_can_go_on(backend: Any) -> None:
    program = Program(PATHS, limits=Limits(tuples=100), backend=backend)
    program.add("edge", [(i, i + 1) for i in range(50)])
    with pytest.raises(EngineError, match="more than 100 tuples"):
        program.run()
    program.run(limits=Limits())
    assert program.count("path") == 50 * 51 // 2


def test_only_what_is_asked_for_is_computed(backend: Any) -> None:
    endless = PATHS + ".decl up(x: number)\nup(x) :- edge(x, _).\nup(x + 1) :- up(x).\n"
    program = Program(endless, limits=Limits(tuples=1000), backend=backend)
    program.add("edge", [(1, 2)])
    program.run("path")
    assert program.rows("path") == [(1, 2)]


@pytest.mark.core
def test_other_threads_run_meanwhile() -> None:
    program = Program(PATHS)
    program.add("edge", [(i, (i + 1) % 700) for i in range(700)])
    other = threading.Thread(target=program.run)
    other.start()
    counted = 0
    while other.is_alive():
        counted += 1
    assert counted > 100
    assert program.count("path") == 700 * 700


@pytest.mark.core
def test_threads_take_turns() -> None:
    program = Program(PATHS + ".decl text(x: symbol)\ntext(to_string(x)) :- path(x, _).\n")

    def ask() -> list[int]:
        found = []
        while writer.is_alive():
            for text in program.relation("text")["x"]:
                assert text == str(int(text))
            rows = program.rows("path")
            found.append(len(program.query("path(x, y)")))
            for x, y in rows[-1:]:
                assert program.explain(f"path({x}, {y})").height >= 1
            assert len(program.table("text")) <= 60
        return found

    def grow() -> None:
        for i in range(60):
            program.add("edge", [(i, j) for j in range(i + 1, i + 4)])
            program.run()

    writer = threading.Thread(target=grow)
    with ThreadPoolExecutor(2) as pool:
        writer.start()
        found = [future.result() for future in (pool.submit(ask), pool.submit(ask))]
    assert all(counts == sorted(counts) for counts in found)


def test_what_gives_facts_may_ask_the_program(backend: Any) -> None:
    program = Program(PATHS, backend=backend)
    program.add("edge", [(1, 2)])
    program.add("edge", ((y, x) for name in ["edge"] for x, y in program.rows(name)))
    assert program.rows("edge") == [(1, 2), (2, 1)]


def test_a_query_takes_the_facts_as_they_are(backend: Any) -> None:
    program = Program(PATHS + SYMBOLS, backend=backend)
    program.add("edge", [(1, 2), (2, 3)])
    program.add("name", NAMES)
    rows = program.query("path(1, x)")
    assert (rows.dtype, rows.tolist()) == ([("x", np.int64)], [(2,), (3,)])
    assert program.count("path") == 0
    program.run()
    assert program.query("path(x, 3), !edge(x, 3)").tolist() == [(1,)]
    assert program.query('name(n, "b", w)').tolist() == [(1, 0.0)]
    assert (len(program.query("path(1, 3)")), len(program.query("path(3, 1)"))) == (1, 0)
    program.add("edge", [(3, 4)])
    assert program.query("path(1, x)").tolist() == [(2,), (3,), (4,)]
    program.run()
    assert program.query("path(1, x)").tolist() == [(2,), (3,), (4,)]
    assert program.count("path") == 6


def test_a_query_with_an_error_and_one_that_takes_too_much(backend: Any) -> None:
    program = Program(PATHS, backend=backend)
    program.add("edge", [(i, (i + 1) % 30) for i in range(30)])
    with pytest.raises(DatalogError, match=r"query:1:1: error\[E0201\]: unknown relation `pth`"):
        program.query("pth(1, x)")
    with pytest.raises(EngineError, match="more than 10 tuples"):
        program.query("path(x, y)", limits=Limits(tuples=10))
    program.run()
    assert program.count("path") == 900


@pytest.mark.parametrize("more", ["path(7, 7)", "blocked(1)", "path(x, 7) :- edge(x, _)"])
def test_a_query_is_one_body(more: str, backend: Any) -> None:
    program = Program(PATHS + ".decl blocked(x: number)\n", backend=backend)
    with pytest.raises(DatalogError, match=r"query:2:1: error\[E0102\]: a query is the body of one rule"):
        program.query(f"path(x, y).\n{more}")


def test_half_a_character_in_a_text(backend: Any) -> None:
    with pytest.raises(DatalogError, match=r"program:2:4: error\[E0101\]: half of a character"):
        Program('.decl r(x: symbol)\nr("\ud800").\n', backend=backend)
    with pytest.raises(DatalogError, match=r"query:1:10: error\[E0101\]: half of a character"):
        Program(PATHS, backend=backend).query('path(x, "\ud800")')


@pytest.mark.parametrize("depth", [-1, 1 << 70])
def test_a_depth_that_is_none(depth: int, backend: Any) -> None:
    program = Program(PATHS, backend=backend)
    program.add("edge", [(1, 2)])
    with pytest.raises(EngineError, match=f"the depth is {depth}; expected a number"):
        program.explain("edge(1, 2)", depth)


# Everything that may or may not go on from what was found before.
ALL = """
.decl edge(x: number, y: number)
.decl mark(x: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
.decl same(x: number, y: number) eqrel
same(x, y) :- edge(x, y), mark(y).
.decl open(x: number, y: number)
open(x, y) :- path(x, y), !mark(y), !same(x, y).
.decl degree(x: number, n: number)
degree(x, n) :- path(x, _), n = count : { open(x, _) }.
.decl far(x: number)
far(y) :- degree(_, n), edge(x, y), far(x), n > 1.
far(x) :- edge(x, x).
.decl even(x: number)
.decl odd(x: number)
even(x) :- mark(x).
odd(y) :- even(x), edge(x, y).
even(y) :- odd(x), edge(x, y).
even(0).
.decl walk(x: number, y: number)
walk(x, y) :- edge(x, y).
walk(x, z) :- walk(x, y), edge(y, z).
.decl walked = debug_delta(walk)
.decl late(x: number, n: unsigned)
late(x, n) :- walked(x, x, n), !mark(x).
late(y, recursive_iteration_cnt()) :- late(x, _), edge(x, y), recursive_iteration_cnt() < 3.
"""
PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=4)
MARKS = st.lists(st.tuples(st.integers(0, 5)), max_size=2)
FACTS = st.fixed_dictionaries({}, optional={"edge": PAIRS, "same": PAIRS, "path": PAIRS, "mark": MARKS})


@pytest.mark.core
@given(st.lists(st.tuples(FACTS, st.sampled_from([(), ("path",), ("far", "open")])), max_size=5))
@drawing(40)
def test_going_on_gives_what_starting_anew_gives(steps: list[tuple[dict[str, Any], tuple[str, ...]]]) -> None:
    program, facts = Program(ALL, backend="core"), Program(ALL, backend="reference")
    for added, asked in steps:
        for name, rows in added.items():
            program.add(name, rows)
            facts.add(name, rows)
        program.run(*asked)
        facts.run()
        names = asked or list(program.relations)
        assert {n: program.rows(n) for n in names} == {n: facts.rows(n) for n in names}


TERMS = st.sampled_from(["0", "1", "2", "x", "y", "_"])
QUERIES = st.one_of(
    st.builds("{}({}, {})".format, st.sampled_from(["path", "same", "open", "degree"]), TERMS, TERMS),
    st.builds("{}({})".format, st.sampled_from(["far", "even", "odd"]), TERMS),
    st.builds("path({}, x), {}(x), !mark(x)".format, TERMS, st.sampled_from(["even", "odd", "far"])),
)


@pytest.mark.parametrize("backend", ["core", "reference"])
@given(facts=FACTS, queries=st.lists(QUERIES, min_size=1, max_size=3))
@drawing(40)
def test_a_query_gives_what_a_run_gives(backend: Any, facts: dict[str, Any], queries: list[str]) -> None:
    program = Program(ALL, backend=backend)
    for name, rows in facts.items():
        program.add(name, rows)
    before = [program.query(query).tolist() for query in queries]
    program.run()
    assert before == [program.query(query).tolist() for query in queries]


def test_a_query_computes_what_it_needs(backend: Any) -> None:
    program = Program(
        """
.decl parent(x: number, y: number)
.decl same(x: number, y: number)
same(x, x) :- parent(x, _).
same(x, y) :- parent(x, p), same(p, q), parent(y, q).
.decl path(x: number, y: number)
path(x, z) :- parent(x, y), path(y, z).
path(x, y) :- parent(x, y).
""",
        backend=backend,
    )
    program.add("parent", [(i, i // 2) for i in range(2, 500)])
    few = Limits(tuples=1000)
    assert program.query("path(257, x)", few)["x"].tolist() == [1, 2, 4, 8, 16, 32, 64, 128]
    with pytest.raises(EngineError):
        program.run("path", limits=few)
    assert program.query("same(9, x)", few)["x"].tolist() == [8, 9, 10, 11]
    with pytest.raises(EngineError):
        program.run("same", limits=few)


MAGIC = """
.pragma "magic-transform" "*"
.decl seed(x: number)
.decl up(x: number)
up(x) :- seed(x).
up(x + 1) :- up(x), x < 2000.
up(x) :- up(x + 1), seed(x).
.decl path(x: number, y: number)
path(x, y) :- seed(x), y = x + 1.
path(x, z) :- path(x, y), z = y + 1, z < 2000.
.decl answer(y: number)
.output answer
answer(y) :- path(7, y), y < 11.
answer(y) :- up(y), y < 4.
"""


def test_a_program_asks_for_magic_sets(backend: Any) -> None:
    rows = []
    for magic in (True, False):
        program = Program(MAGIC, backend=backend, magic=magic)
        program.add("seed", [(1,), (7,), (9,)])
        program.run_outputs()
        rows.append((program.rows("answer"), program.count("path")))
    assert rows == [([(1,), (2,), (3,), (8,), (9,), (10,)], 0), (rows[0][0], 1999 * 3 - 17)]


@pytest.mark.parametrize("first", [False, True])
def test_magic_sets_take_facts_added_to_any_relation(backend: Any, first: bool) -> None:
    program = Program(
        """.pragma "magic-transform" "*"
        .decl edge(x: number, y: number)
        .decl found(x: number)
        .output found
        edge(1, 2). found(2).
        found(x) :- found(y), edge(x, y).""",
        backend=backend,
        magic=True,
    )
    if first:
        program.run_outputs()
    program.add("edge", [(3, 1), (5, 4)])
    program.run_outputs()
    assert program.rows("found") == [(1,), (2,), (3,)]


def test_magic_sets_compute_an_output_in_full_that_another_denies() -> None:
    program = Program(
        """.pragma "magic-transform" "*"
        .decl edge(x: number, y: number)
        .decl loops(x: number)
        .decl ends(x: number)
        .decl both(x: number)
        .output loops, both
        edge(1, 2). edge(2, 2). edge(3, 4).
        loops(x) :- edge(x, x).
        loops(x) :- edge(x, y), loops(y).
        ends(x) :- edge(x, _), !loops(x).
        both(x) :- ends(x), loops(x).""",
        magic=True,
    )
    program.run_outputs()
    assert program.rows("loops") == [(1,), (2,)]
    assert program.rows("both") == []


def test_magic_sets_ask_for_both_zeros(backend: Any) -> None:
    program = Program(
        """.pragma "magic-transform" "*"
        .decl given(x: float)
        .decl passed(x: float)
        .decl found(x: float)
        .output found
        given(0.0). given(-0.0). given(1.0).
        passed(x) :- given(x).
        found(x) :- passed(x), x = 0.0.""",
        backend=backend,
        magic=True,
    )
    program.run_outputs()
    assert len(program.rows("found")) == 2


def test_what_is_asked_of_a_relation_in_very_many_ways_is_computed_in_full(backend: Any) -> None:
    """Each rule forgets another column: 65,536 ways to ask."""
    names = [f"x{i}" for i in range(16)]
    lines = [f".decl r({', '.join(f'{name}: number' for name in names)})", f"r({', '.join('1' * 16)})."]
    for i, name in enumerate(names):
        others = [*names[:i], "_", *names[i + 1 :]]
        lines.append(f"r({', '.join(names)}) :- r({', '.join(others)}), {name} = 1.")
    program = Program("\n".join(lines), backend=backend)
    assert program.query(f"r(x{', 1' * 15})")["x"].tolist() == [1]


REMOVALS = """
.decl edge(x: number, y: number)
edge(0, 1).
.decl given(x: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
path(9, x) :- given(x).
.decl apart(x: number)
apart(x) :- edge(x, _), !path(x, 3).
.decl most(n: number)
most(n) :- n = max x : { path(x, _) }.
.decl same(x: number, y: number) eqrel
same(x, y) :- path(x, y), x < 3.
.decl named(s: symbol, n: number)
.decl number(s: symbol, n: number)
number(s, ord(s)) :- named(s, _).
.decl holds()
.decl shown(x: number)
shown(x) :- given(x), holds().
"""


@pytest.mark.parametrize("seed", range(5))
def test_facts_are_removed(seed: int, backend: Any) -> None:
    draw = random.Random(seed)
    program = Program(REMOVALS, backend=backend)
    facts: set[tuple[str, tuple[int, ...]]] = {("edge", (0, 1))}
    names = {"edge": 2, "given": 1, "path": 2, "same": 2, "holds": 0}
    for _ in range(8):
        name = draw.choice(list(names))
        rows = [tuple(draw.randrange(5) for _ in range(names[name])) for _ in range(draw.randrange(1, 6))]
        if draw.random() < 0.5:
            program.add(name, rows)
            facts |= {(name, row) for row in rows}
        else:
            program.remove(name, rows)
            facts -= {(name, row) for row in rows if (name, row) != ("edge", (0, 1))}
        if draw.random() < 0.3:
            continue
        program.run()
        scratch = Program(REMOVALS, backend=backend)
        for relation, row in sorted(facts):
            scratch.add(relation, [row])
        scratch.run()
        for relation in scratch.relations:
            assert program.rows(relation) == scratch.rows(relation), relation
        for row in program.rows("path"):
            assert program.explain(f"path{row}").height == scratch.explain(f"path{row}").height


def test_what_is_removed_has_no_proof(backend: Any) -> None:
    program = Program(REMOVALS, backend=backend)
    program.add("edge", [(1, 2), (2, 3)])
    program.add("named", [("a", 1), ("b", 2)])
    program.run()
    program.remove("edge", np.array([(2, 3), (0, 1)]))
    program.remove("named", [("a", 1), ("c", 3)])
    with pytest.raises(EngineError, match="`path` is not computed"):
        program.explain("path(0, 3)")
    assert program.query("path(0, x)")["x"].tolist() == [1, 2]
    program.run()
    assert program.rows("path") == [(0, 1), (0, 2), (1, 2)]
    assert program.rows("number") == [("b", 1)]
    with pytest.raises(EngineError, match=r"`edge`, fact 0: expected a tuple of 2 values, found \(1,\)"):
        program.remove("edge", [(1,)])
    with pytest.raises(EngineError, match="`edge`: expected tuples or a table, found 1"):
        program.remove("edge", 1)


@pytest.mark.parametrize("form", ["structured", "pandas", "pyarrow", "column"])
def test_what_is_removed_has_any_form_that_is_added(form: str, backend: Any) -> None:
    kinds = [("s", object), ("x", np.uint64)]
    facts: Any = np.array([("a", 1), ("b", 2**64 - 1), ("absent", 3)], kinds)
    relation = "r"
    left: list[tuple[Any, ...]] = [("a", 2)]
    if form == "column":
        relation, facts, left = "one", np.array(["a", "a", "absent"]), [("b",)]
    elif form != "structured":
        columns = {name: facts[name] for name, _ in kinds}
        module = pytest.importorskip(form)
        facts = module.DataFrame(columns) if form == "pandas" else module.table(columns)
    program = Program(".decl r(s: symbol, x: unsigned)\n.decl one(s: symbol)\n", backend=backend)
    program.add("r", [("a", 1), ("a", 2)])
    program.add("one", [("b",)])
    program.add(relation, facts)
    program.remove(relation, facts)
    program.run()
    assert program.rows(relation) == left


@pytest.mark.core
def test_only_what_depends_on_removed_facts_is_computed_anew() -> None:
    program = Program(
        ".decl a(x: number)\n.decl b(x: number)\n.decl p(x: number)\np(x) :- a(x).\n"
        ".decl q(x: number)\nq(x) :- b(x), !a(x).\n.decl r(x: number)\nr(x) :- p(x), x > 1.\n"
        ".decl alike(x: number, y: number) eqrel\n.decl s(x: number)\ns(x) :- alike(1, x)."
    )
    program.add("a", [(1,), (2,), (3,)])
    program.add("b", [(2,), (5,)])
    program.add("alike", [(1, 2), (2, 3)])
    program.run()
    program.remove("b", [(5,)])
    assert not program.profile().rules  # without a fact a relation only loses tuples, which are found
    program.remove("a", [(2,)])
    assert {rule.text[0] for rule in program.profile().rules} == {"q"}  # it may have more, too
    program.add("a", [(4,)])
    program.remove("alike", [(2, 3)])
    assert {rule.text[0] for rule in program.profile().rules} == {"p", "q", "r", "s"}
    found = {name: [row[0] for row in program.rows(name)] for name in "pqrs"}
    assert found == {"p": [1, 3, 4], "q": [2], "r": [3, 4], "s": [1, 2]}
    assert program.rows("alike") == [(1, 1), (1, 2), (2, 1), (2, 2)]


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("prefix", ["", "java.lang.Object.a", "é"])
def test_tables_are_sorted_by_value(width: int, prefix: str, backend: Any) -> None:
    draw = random.Random(width)
    kinds = ["symbol", "number", "symbol", "unsigned", "number"][:width]
    ends = ["", "a", "a\0", "\0", "b", "abcdefgh", "abcdefghi", "abcdefghh", "\U0001f600", "\uffff", "Z"]
    values: dict[str, Callable[[], Any]] = {
        "symbol": lambda: prefix + draw.choice(ends),
        "number": lambda: draw.randrange(-5, 5),
        "unsigned": lambda: draw.choice([0, 1, 2**31, 2**32 - 1]),
    }
    columns = ", ".join(f"x{i}: {kind}" for i, kind in enumerate(kinds))
    program = Program(f".decl r({columns})", backend=backend)
    rows = {tuple(values[kind]() for kind in kinds) for _ in range(200)}
    program.add("r", list(rows))
    program.run()
    found = [tuple(row) for row in program.relation("r").tolist()]
    assert found == sorted(rows) == program.rows("r")


ROOM = ".decl e(x: number, y: number)\n.decl p(x: number, y: number)\np(1, 2).\np(x, y) :- e(x, y).\n"
NO_ROOM = (
    r"the facts take (at least|about) \d+ MiB of memory, and the limit is 1; raise the limit, or give fewer"
)


@pytest.mark.core
@pytest.mark.parametrize("relation", ["e", "p"])
@pytest.mark.parametrize(
    "facts",
    [lambda: np.arange(1_000_000).reshape(-1, 2), lambda: ((i, -i) for i in count())],
    ids=("table", "stream"),
)
def test_facts_without_room_are_refused_as_they_are_added(relation: str, facts: Callable[[], Any]) -> None:
    program = Program(ROOM, limits=Limits(memory=1 << 20))
    program.add(relation, [(3, 4), (5, 6)])
    program.run()
    program.remove(relation, [(5, 6)])
    with pytest.raises(EngineError, match=NO_ROOM):
        program.add(relation, facts())
    program.run()
    assert program.rows("p") == [(1, 2), (3, 4)]
    program.add(relation, [(5, 6)])
    program.run()
    assert program.rows("p") == [(1, 2), (3, 4), (5, 6)]


@pytest.mark.core
@pytest.mark.parametrize("wide", [0, 1 << 40], ids=["narrow", "wide"])
@pytest.mark.parametrize("again", [0, 1], ids=["distinct", "twice"])
def test_many_facts_are_distinct(wide: int, again: int) -> None:
    pairs = np.random.default_rng(1).permutation(100_000).reshape(-1, 1) * np.array([1, -3])
    pairs[50_000] += wide
    program = Program(
        ".decl e(x: number, y: number)\n.decl s(x: number)\n.decl b(x: number)\nb(x) :- e(x, y), e(y, x)."
    )
    program.add("e", np.concatenate([pairs, pairs[:again]]))
    program.add("s", np.concatenate([pairs[:, 0], pairs[:again, 0]]))
    assert program.count("e") == program.count("s") == 100_000
    program.add("e", np.concatenate([pairs[-2:], [(-3, 1)]]))
    program.add("s", pairs[:5, 0])
    program.run()
    assert (program.count("e"), program.count("s")) == (100_001, 100_000)
    assert program.rows("b") == [(-3,), (0,), (1,)]
    program.remove("e", pairs[pairs[:, 0] == 1])
    program.run()
    assert program.rows("b") == [(0,)]


def test_facts_without_room_are_refused_before_a_rule_runs(backend: Any) -> None:
    program = Program(ROOM, backend=backend)
    program.add("e", ((i, i) for i in range(200_000)))
    with pytest.raises(EngineError, match=NO_ROOM if backend == "core" else "more than 1 MiB"):
        program.run(limits=Limits(memory=1 << 20))


def test_a_stream_may_query_the_program_and_adds_all_or_nothing(backend: Any) -> None:
    program = Program(ROOM, backend=backend)
    asked: list[int] = []

    def stream(last: Any) -> Iterator[tuple[Any, Any]]:
        for i in range(70_000):
            if i % 30_000 == 0:
                asked.append(len(program.query("e(x, _)")))
            yield i, i
        yield last, last

    with pytest.raises(
        EngineError, match="`e`, fact 70000, column `x`: expected a number of 64 bits, found 'no'"
    ):
        program.add("e", stream("no"))
    program.add("e", stream(70_000))
    assert (asked, program.count("e")) == ([0] * 6, 70_001)


@pytest.mark.core
@pytest.mark.parametrize("large", [3, 1 << 40], ids=("narrow", "wide"))
def test_a_scan_of_many_tuples_for_few_others(large: int) -> None:
    """Tuples that cannot meet any of the few are left out at once: the answer is that of the reference."""
    rules = """.decl many(x: number, y: number)
.decl few(y: number, z: number)
.decl none(y: number)
.decl met(x: number, z: number)
met(x, z) :- many(x, y), few(y, z).
.decl once(x: number)
once(x) :- many(x, y), few(y, _), !none(y).
.decl same(x: number)
same(x) :- many(x, y), few(x, y).
.decl total(n: number)
total(n) :- n = sum x : { many(x, y), few(y, _) }.
"""
    answers = []
    for backend in ("core", "reference"):
        program = Program(rules, backend=backend)
        program.add("many", [(i, i * large % 1009) for i in range(3000)])
        program.add("few", [(5, 1), (5, 2), (700, 3), (-1, 4), (large, 5)])
        program.run()
        program.add("few", [(6, 6 * large % 1009)])
        program.remove("few", [(700, 3)])
        program.run()
        answers.append([program.rows(name) for name in ("met", "once", "same", "total")])
    assert answers[0] == answers[1]
    assert all(answers[0])
