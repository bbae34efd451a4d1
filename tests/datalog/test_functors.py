"""Functors that Python functions compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardlog.datalog import Program
from shardlog.engine import DatalogError, EngineError

BACKENDS = pytest.mark.parametrize("backend", [pytest.param("core", marks=pytest.mark.core), "reference"])
STEPS = """
.functor next(number, by: number): number
.decl start(x: number)
.decl reached(x: number)
reached(x) :- start(x).
reached(@next(x, 2)) :- reached(x), x < 6.
.decl missed(x: number)
missed(x) :- x = range(0, 9), !reached(x).
.decl twice(x: number, y: number)
twice(x, @next(@next(x, 1), 1)) :- missed(x).
"""


def _next(x: Any, by: Any) -> Any:
    return x + by


@BACKENDS
def test_functors_in_recursion_and_behind_negation(backend: Any) -> None:
    program = Program(STEPS, functors={"next": _next}, backend=backend)
    program.add("start", [(1,)])
    program.run()
    assert program.rows("reached") == [(1,), (3,), (5,), (7,)]
    assert program.rows("twice") == [(x, x + 2) for x in (0, 2, 4, 6, 8)]
    proof = program.explain("twice(4, 6)")
    assert "@next(4, 1) = 5" in str(proof) and "@next(5, 1) = 6" in str(proof)
    assert "@next(1, 2) = 3" in str(program.explain("reached(5)"))
    program.add("start", [(4,)])
    program.run()
    assert program.rows("reached") == [(1,), (3,), (4,), (5,), (6,), (7,)]
    assert program.rows("twice") == [(0, 2), (2, 4), (8, 10)]
    program.remove("start", [(1,)])
    assert program.query("twice(x, y), y < 4").tolist() == [(0, 2), (1, 3)]
    assert list(program.relations) == ["start", "reached", "missed", "twice"]


def test_a_function_gets_all_arguments_at_once_and_each_once() -> None:
    asked: list[list[int]] = []

    def halved(x: Any) -> Any:
        asked.append(x.tolist())
        return x // 2

    program = Program(
        ".functor halved(number): number\n.decl n(x: number)\n.decl half(y: number)\n.decl again(y: number)\n"
        "half(@halved(x)) :- n(x), x > 2.\nagain(@halved(x)) :- n(x).",
        functors={"halved": halved},
    )
    program.add("n", [(x,) for x in range(6)])
    program.run()
    program.run()
    assert program.rows("half") == [(1,), (2,)]
    assert sorted(map(sorted, asked)) == [[0, 1, 2], [3, 4, 5]]


@BACKENDS
def test_values_of_every_type(backend: Any) -> None:
    program = Program(
        ".type Pair = [a: number, b: symbol]\n.type Shape = Circle {r: float} | Dot {}\n"
        ".functor f(symbol, unsigned, float, Pair, Shape): Pair\n.functor g(Pair): Shape\n"
        ".functor zero(): number\n"
        ".decl s(t: symbol)\n.decl r(p: Pair, s: Shape, z: number)\n"
        's("a"). s("b").\n'
        "r(p, @g(p), @zero()) :- s(t), p = @f(t, 18446744073709551615, 0.5, [1, t], $Circle(2.5)).",
        functors={
            "f": lambda t, u, x, p, s: [
                (int(u_ % 10 + 2 * x_ + b[0]), t_ + c[0])
                for t_, u_, x_, b, c in zip(t, u, x, p, s, strict=True)
            ],
            "g": lambda p: [("Dot",) for _ in p],
            "zero": lambda: [0],
        },
        backend=backend,
    )
    program.run()
    assert program.rows("r") == [((7, "aCircle"), ("Dot",), 0), ((7, "bCircle"), ("Dot",), 0)]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([1], "the functor `f` returned 1 value for 2 arguments"),
        (None, "the functor `f` returned None; expected 2 values"),
        (["a", "b"], "the values of the functor `f` do not fit: .*expected numbers of 64 bits, found 'a'"),
    ],
)
def test_values_that_do_not_fit(returned: Any, message: str) -> None:
    text = (
        ".functor f(number): number\n.decl p(x: number)\np(1). p(2).\n.decl q(x: number)\nq(@f(x)) :- p(x)."
    )
    program = Program(text, functors={"f": lambda x: returned})
    with pytest.raises(EngineError, match=message):
        program.run()


@pytest.mark.parametrize(
    ("rule", "code", "line"),
    [
        ("q(@g(x)) :- p(x).", "E0105", 4),
        ("q(@f(x, x)) :- p(x).", "E0302", 4),
        ("q(@f(y)) :- p(x).", "E0401", 4),
        ("q(n) :- n = count : { p(x), @f(x) > 1 }.", "E0105", 4),
        ("q(x) :- p(x), @h(x) = 1.", "E0201", 4),
        (".functor f(number): number", "E0202", 4),
        ("q(x) :- s(x), @f(x) = 1.", "E0201", 4),
    ],
)
def test_calls_that_are_refused(rule: str, code: str, line: int) -> None:
    text = f".functor f(number): number\n.decl p(x: number)\n.decl q(x: number)\n{rule}"
    with pytest.raises(DatalogError) as error:
        Program(text, functors={"f": _next, "h": _next})
    assert [(d.code, d.line) for d in error.value.diagnostics] == [(code, line)]


def test_values_fit_subtypes_of_their_type() -> None:
    program = Program(
        ".type Set <: symbol\n.functor with(symbol, number): symbol\n.decl n(x: number)\n.decl set(s: Set)\n"
        'set("") :- n(_).\nset(@with(s, x)) :- set(s), n(x), strlen(s) < 2.',
        functors={"with": lambda sets, xs: [f"{s}{x}" for s, x in zip(sets, xs, strict=True)]},
    )
    program.add("n", [(1,), (2,)])
    program.run()
    assert [s for (s,) in program.rows("set")] == ["", "1", "11", "12", "2", "21", "22"]


def test_functions_without_a_functor_and_magic_sets() -> None:
    with pytest.raises(EngineError, match="declares no functor `g`; declare it"):
        Program(".functor f(number): number", functors={"f": _next, "g": _next})
    with pytest.raises(EngineError, match="leave out `magic`"):
        Program(".functor f(number): number", functors={"f": _next}, magic=True)
    program = Program(STEPS, functors={"next": _next})
    with pytest.raises(DatalogError, match="a query calls no functors"):
        program.query("reached(x), @next(x, 1) = 2")


TABLE = [3, 1, 4, 1, 5, 9, 2, 6]
BODIES = ["e(x, y)", "e(y, x)", "p(x), e(x, y)", "r(x, y), !p(y)", "e(x, z), e(z, y)", "p(x), p(y), x < y"]
CALLS = ["{p}(@f(x)) :- {b}.", "{p}(y) :- {b}, @f(x) = y.", "{p}(@f(@f(x) + y)) :- {b}, @f(y) < 5."]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12),
    st.lists(st.tuples(st.sampled_from(CALLS), st.sampled_from(BODIES[:4:3] + BODIES[4:])), max_size=3),
    st.lists(st.tuples(st.sampled_from(CALLS), st.sampled_from(BODIES)), max_size=3),
)
def test_a_functor_is_a_relation_of_all_its_values(
    edges: list[tuple[int, int]], first: Sequence[tuple[str, str]], second: Sequence[tuple[str, str]]
) -> None:
    rules = [call.format(p="p", b=body.replace("r(x, y), !p(y)", "e(x, y)")) for call, body in first]
    rules += [call.format(p="q", b=body) for call, body in second]
    shared = ".decl e(x: number, y: number)\n.decl p(x: number)\n.decl q(x: number)\n"
    shared += ".decl r(x: number, y: number)\nr(x, y) :- e(x, y), p(x).\n"
    program = Program(
        ".functor f(number): number\n" + shared + "\n".join(rules),
        functors={"f": lambda x: np.array(TABLE)[x % 8]},
    )
    program.add("e", edges)
    program.run()
    written = ".decl t(x: number, y: number)\n" + "".join(f"t({x}, {TABLE[x % 8]}).\n" for x in range(32))
    plain = []
    for rule in rules:
        rule = rule.replace("@f(@f(x) + y)", "b").replace("@f(x)", "a").replace("@f(y)", "c")
        extra = (
            ", t(x, a)" + (", t(y, c)" if "c <" in rule else "") + (", t(a + y, b)" if "(b)" in rule else "")
        )
        plain.append(rule[:-1] + extra + ".")
    expected = Program(shared + written + "\n".join(plain))
    expected.add("e", edges)
    expected.run()
    assert [program.rows(name) for name in ("p", "q")] == [expected.rows(name) for name in ("p", "q")]
