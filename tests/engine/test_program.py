"""Loading and evaluating programs from Python."""

from __future__ import annotations

import importlib
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shardlog.engine import DatalogError, EngineError, LoadedProgram, load
from shardlog.engine.evaluate import program as evaluated
from shardlog.engine.evaluate.program import Backend
from shardlog.engine.plan.plan import QueryPlan


def program(text: str, key: str | None = None) -> LoadedProgram:
    return load(key=key, texts={"t.dl": text})


CLOSURE = """
    .decl edge(a:number, b:number)
    .input edge
    .decl reach(a:number, b:number)
    reach(a, b) :- edge(a, b).
    reach(a, c) :- reach(a, b), edge(b, c).
    .decl start(b:number)
    start(b) :- reach(1, b).
    .output start
"""


def test_facts_and_outputs(backend: Any) -> None:
    """Facts are tuples, lists or an array; outputs are those of the program or those that are named."""
    closure = program(CLOSURE)
    edges = [(2, 3), (1, 2)]
    assert closure.evaluate({"edge": edges}, backend=backend) == {"start": [(2,), (3,)]}
    assert closure.evaluate({"edge": np.array(edges)}, ["reach", "edge"], backend) == {
        "reach": [(1, 2), (1, 3), (2, 3)],
        "edge": [(1, 2), (2, 3)],
    }
    assert closure.evaluate({"edge": iter(edges), "reach": [(9, 1)]}, ["reach"], backend)["reach"] == [
        (1, 2), (1, 3), (2, 3), (9, 1), (9, 2), (9, 3),
    ]  # fmt: skip
    assert closure.evaluate({}, backend=backend) == {"start": []}


def test_every_type(backend: Any) -> None:
    copy = program("""
        .type pair = [a:symbol, b:pair]
        .type child = pair
        .decl given(n:number, u:unsigned, f:float, s:symbol, p:child)
        .decl r(n:number, u:unsigned, f:float, s:symbol, p:child)
        r(n, u, f, s, p) :- given(n, u, f, s, p).
        .output r
    """)
    rows = [
        (-(2**63), 2**64 - 1, -0.5, "größe", None),
        (1, 0, math.inf, "", ("a", None)),
        (1, 0, math.inf, "", ("a", ("b", None))),
        (1, 0, math.inf, "", ("b", None)),
        (1, 1, 0.0, "", None),
    ]
    assert copy.evaluate({"given": rows[::-1]}, backend=backend)["r"] == rows


def test_two_zeros_and_one_nan(backend: Any) -> None:
    """-0.0 comes before 0.0, and NaN, which is one value, last."""
    floats = program("""
        .decl f(x:float)
        .decl r(x:float)
        r(x) :- f(x).
        r(x) :- f(x), f(y), x = y * -1.0.
        .output r
    """)
    facts = [(0.0,), (-0.0,), (math.nan,), (2.0,), (-2.0,)]
    (low,), (below,), (zero,), (high,), (nan,) = floats.evaluate({"f": facts}, backend=backend)["r"]
    assert (low, below, zero, high) == (-2.0, 0.0, 0.0, 2.0)
    assert (math.copysign(1, below), math.copysign(1, zero)) == (-1, 1)
    assert math.isnan(nan)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"edgy": [(1, 2)]}, "unknown relation `edgy`; did you mean `edge`?"),
        ({"edge": [(1, 2), (3,)]}, "`edge`, fact 1: expected a tuple of 2 values, found (3,)"),
        ({"edge": [(1, "2")]}, "`edge`, fact 0, column `b`: expected a number of 64 bits, found '2'"),
        ({"edge": [(1, 2**63)]}, "`edge`, fact 0, column `b`: expected a number of 64 bits, found 92233720"),
    ],
)  # fmt: skip
def test_facts_that_do_not_fit(facts: Any, message: str, backend: Any) -> None:
    with pytest.raises(EngineError) as error:
        program(CLOSURE).evaluate(facts, backend=backend)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("r(1 / x) :- n(x).", "division by zero"),
        ("r(1 % x) :- n(x).", "division by zero"),
        ('r(to_number("one")).', "no number"),
    ],
)
def test_what_goes_wrong_while_running(rule: str, message: str, backend: Any) -> None:
    wrong = program(f".decl n(x:number) n(0). .decl r(x:number) .output r\n{rule}")
    with pytest.raises(EngineError, match=rf"t\.dl:2: .*{message}"):
        wrong.evaluate({}, backend=backend)


def test_a_pattern_that_is_none_matches_nothing(backend: Any) -> None:
    text = 'r("a") :- match("(", "a"). r("b") :- !match("[", "a"). r("c") :- !match("b", "a").'
    rules = program(f".decl r(x:symbol) .output r {text}")
    assert rules.evaluate({}, backend=backend) == {"r": [("c",)]}


def test_a_divisor_can_be_tested_first(backend: Any) -> None:
    """A step that can fail waits for everything written before it."""
    rules = program("""
        .decl n(x:number)
        n(0). n(4).
        .decl divisor(x:number)
        divisor(4).
        .decl r(x:number)
        r(y) :- n(x), divisor(x), y = 8 / x.
        r(y) :- n(x), !n(x + 4), n(y), y % x = 1 - x / 4.
        .output r
    """)
    assert rules.evaluate({}, backend=backend) == {"r": [(0,), (2,), (4,)]}


def test_unknown_output(backend: Any) -> None:
    with pytest.raises(EngineError, match="unknown relation `raech`; did you mean `reach`"):
        program(CLOSURE).evaluate({}, ["raech"], backend)


KEYED = """
    .type sig <: number
    .decl op(s:sig, name:symbol)
    .decl slot(s:sig, t:number, rank:number)
    .input op, slot
    .decl wide(name:symbol)
    .decl known(name:symbol)
    known(n) :- wide(n).
    .decl rank(s:sig, r:number)
    rank(s, r) :- op(s, n), known(n), r = max k : { slot(s, _, k) }.
    .decl other(s:sig)
    other(s) :- op(s, n), !known(n).
    .output rank, other
"""


def test_keyed_program(backend: Any) -> None:
    """A keyed program is solved for one key at a time; its key's column is gone."""
    keyed = program(KEYED, key="sig")
    solver = keyed.solver({"wide": [("dot",), ("add",)]}, backend)
    assert solver.solve({"op": [("dot",)], "slot": [(0, 2), (1, 3)]}) == {"rank": [(3,)], "other": []}
    assert solver.solve({"op": [("copy",)], "slot": [(0, 9)]}) == {"rank": [], "other": [()]}
    assert solver.solve({"op": [("add",)], "slot": [(0, 1)]}, ["rank"]) == {"rank": [(1,)]}
    assert [c.name for c in keyed.relations["slot"].columns] == ["t", "rank"]
    assert keyed.relations["slot"].keyed
    assert not keyed.relations["wide"].keyed


def test_key_by_key_is_all_at_once(backend: Any) -> None:
    """Solving per key gives what the plain program gives for all keys together."""
    ops = {1: "dot", 2: "copy", 3: "add", 4: "dot"}
    slots = {1: [(0, 2), (1, 3)], 2: [(0, 1)], 3: [], 4: [(0, 5)]}
    wide = [("dot",), ("add",)]
    plain = program(KEYED).evaluate(
        {
            "op": list(ops.items()),
            "slot": [(s, *row) for s, rows in slots.items() for row in rows],
            "wide": wide,
        },
        backend=backend,
    )
    solver = program(KEYED, key="sig").solver({"wide": wide}, backend)
    answers = {s: solver.solve({"op": [(ops[s],)], "slot": slots[s]}) for s in ops}
    for name, rows in plain.items():
        assert rows == [(s, *row) for s in ops for row in answers[s][name]]


@pytest.mark.parametrize("backend", ["core", "reference"])
def test_a_solver_takes_and_gives_branches_by_name(backend: Backend) -> None:
    text = """
        .type key <: number
        .type tree = Leaf { value: number } | Node { left: tree, right: tree }
        .decl given(k: key, tree: tree)
        .input given
        .decl left(k: key, tree: tree)
        .output left
        left(k, tree) :- given(k, $Node(tree, _)).
    """
    leaves = ("Node", ("Leaf", 1), ("Leaf", 2))
    solver = load(key="key", texts={"t.dl": text}).solver({}, backend)
    assert solver.solve({"given": [(leaves,), (("Node", leaves, ("Leaf", 1)),)]}) == {
        "left": [(("Leaf", 1),), (leaves,)]
    }


def test_right_way_to_evaluate() -> None:
    with pytest.raises(EngineError, match=r"keyed by `sig`: use solver"):
        program(KEYED, key="sig").evaluate({})
    with pytest.raises(EngineError, match="no key"):
        program(KEYED).solver({})


def test_key_that_is_no_type() -> None:
    with pytest.raises(EngineError, match="no type `sgi` for its key; did you mean `sig`"):
        program(KEYED, key="sgi")


def test_files(tmp_path: Path) -> None:
    """Files make one program; an included file is found beside the one that includes it, and read once."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "types.dl").write_text(".type id <: number\n.decl base(x:id)\nbase(1).\n")
    (tmp_path / "parts" / "more.dl").write_text('.include "types.dl"\nbase(2).\n')
    first, second = tmp_path / "first.dl", tmp_path / "second.dl"
    first.write_text('.include "parts/more.dl"\n#include "parts/types.dl"\n.output base\n')
    second.write_text("base(3).\n")
    loaded = load([first, second], texts={"extra": "base(4)."})
    assert loaded.evaluate({}, backend="reference") == {"base": [(1,), (2,), (3,), (4,)]}


def test_sources(tmp_path: Path) -> None:
    """A rule's plan says where it stands, its text, and its sentence; alternatives share them."""
    file = tmp_path / "rules.dl"
    file.write_text(
        "// A comment is no sentence.\n"
        ".decl p(x:number)\n"
        ".decl q(x:number)\n"
        "\n"
        "/// {x} is in q\n"
        "/// because of p.\n"
        "q(x) :-\n"
        "    p(x), (x > 1 ; x < 0).\n"
        "p(x) :- q(x). p(x) :- q(x), x = 2.\n"
    )
    plan = load([file]).plan
    sources = sorted(plan.sources, key=lambda source: source.line)
    assert [(s.file, s.line, s.text, s.sentence) for s in sources] == [
        (str(file), 7, "q(x) :-\n    p(x), (x > 1 ; x < 0).", "{x} is in q because of p."),
        (str(file), 9, "p(x) :- q(x).", ""),
        (str(file), 9, "p(x) :- q(x), x = 2.", ""),
    ]
    alternatives = [rule for rule in plan.rules if plan.sources[rule.source].line == 7]
    assert len(alternatives) == 2


def test_same_text_same_plan() -> None:
    assert program(KEYED, key="sig").plan.to_json() == program(KEYED, key="sig").plan.to_json()


DIRECTIVES = """
.decl a(x:number) .decl b(x:number)
.input a, b(IO=file, delimiter=",", headers=true)
.limitsize a(n=10)
"""


def test_directives() -> None:
    """Directives keep their parameters, which all relations of the line share."""
    directives = [(d.kind, d.relation, d.parameters, d.line) for d in program(DIRECTIVES).directives]
    file = {"IO": "file", "delimiter": ",", "headers": "true"}
    assert directives == [
        ("input", "a", file, 3),
        ("input", "b", file, 3),
        ("limitsize", "a", {"n": "10"}, 4),
    ]
    with pytest.raises(DatalogError, match=r"t\.dl:3:8: .*names a file, but these rules read and write none"):
        load(texts={"t.dl": DIRECTIVES}, files=False)


POINTERS = """
    .decl load(a:number, b:number)
    .decl start(a:number, b:number)
    .input load, start
    .decl points(a:number, b:number)
    .output points
    points(a, b) :- start(a, b).
    points(a, c) :- load(a, b), points(b, p), points(p, c).
"""


def test_recursive_rules_of_three_atoms_are_planned_in_several_orders() -> None:
    plan = program(POINTERS).plan
    starts = [
        [order.steps[0][1:3] for order in (rule, *rule.orders)]
        for rule in plan.rules[plan.strata[0].recursive[0] :]
    ]
    load_, points = plan.index("load"), plan.index("points")
    assert starts == [
        [(points, "delta"), (load_, "all"), (points, "all")],
        [(points, "delta"), (load_, "all"), (points, "old")],
    ]
    assert QueryPlan.from_json(plan.to_json()) == plan


@pytest.mark.core
@pytest.mark.parametrize("loads", [1, 300])
def test_every_order_gives_the_same(loads: int) -> None:
    """One load or many, with pointers that all lead to one or are spread."""
    facts = {"load": [(i, i % 7) for i in range(loads)], "start": [(i % 40, i % 11) for i in range(400)]}
    pointers = program(POINTERS)
    assert pointers.evaluate(facts, backend="core") == pointers.evaluate(facts, backend="reference")


def test_a_process_is_warned_once_that_the_compiled_evaluator_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str, package: str | None = None) -> Any:
        raise ImportError(name)

    rules = program(CLOSURE)
    monkeypatch.setattr(importlib, "import_module", missing)
    evaluated._warn.cache_clear()
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for number in range(3):
            assert rules.evaluate({"edge": [(1, number)]})["start"] == [(number,)]
    assert ["much slower" in str(each.message) for each in given] == [True]
