"""Removed facts: after a run a program has what a run over the other facts gives."""

from __future__ import annotations

import random

import numpy as np
import pytest
from shardlog.datalog import Limits, Program
from shardlog.engine import EngineError

PATHS = """
.decl edge(x: number, y: number)
edge(0, 1).
.decl given(x: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
path(9, x) :- given(x).
.decl apart(x: number)
apart(x) :- edge(x, _), !path(x, 3).
.decl odd(x: number, y: number)
.decl even(x: number, y: number)
even(x, x) :- edge(x, _).
odd(x, z) :- even(x, y), edge(y, z).
even(x, z) :- odd(x, y), edge(y, z), z != 4.
even(1, 2) :- odd(x, x), given(x).
.decl tri(x: number, y: number, z: number)
tri(x, y, z) :- path(x, y), path(y, z), path(z, x), x <= y.
tri(y, z, x) :- tri(x, y, z), given(y).
.decl far(x: number, d: number)
far(x, 0) :- given(x).
far(y, d + 1) :- far(x, d), edge(x, y), d < 5.
.decl top(x: number)
top(x) :- far(x, d), d > 3.
top(y) :- top(x), edge(x, y), path(y, x).
"""

VALUES = """
.type P = [a: number, b: P]
.decl edge(x: number, y: number)
.decl given(x: number)
.decl w(x: number, f: float, s: symbol)
w(x, to_float(x) / 2, "a") :- given(x).
w(y, f, cat(s, "b")) :- w(x, f, s), edge(x, y), strlen(s) < 4.
.decl l(p: P)
l([x, nil]) :- given(x).
l([y, p]) :- l(p), p = [x, q], edge(x, y), q = nil.
l([y, [x, nil]]) :- edge(x, y), l([y, nil]).
.decl pts(v: number, o: number)
.decl store(v: number, o: number)
.decl load(v: number, o: number)
pts(x, y) :- edge(x, y), given(y).
pts(v, o) :- edge(v, w), pts(w, o).
pts(v, o) :- load(v, p), pts(p, q), pts(q, o).
pts(q, o) :- store(p, w), pts(p, q), pts(w, o).
.decl alias(x: number, y: number)
alias(x, y) :- pts(x, o), pts(y, o), !given(x).
.decl many(n: number)
many(n) :- n = count : { pts(_, _) }.
.decl big(x: number, y: number)
big(x, y * 3000000000) :- pts(x, y).
big(y, x) :- big(x, y), y > 0, load(_, x).
.decl un(x: number)
un(x) :- pts(x, _).
un(y) :- un(x), edge(x, y).
"""

TALL = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl around(x: number, y: number, z: number)
around(x, y, z) :- edge(x, y), edge(y, z), path(z, x).
.decl wide(x: number, y: number)
wide(x * 5000000000, y) :- path(x, y).
"""


def check_agree(program: Program, scratch: Program) -> None:
    scratch.run()
    for relation in scratch.relations:
        assert program.rows(relation) == scratch.rows(relation), relation


@pytest.mark.parametrize("text", [PATHS, VALUES], ids=["paths", "values"])
@pytest.mark.parametrize("seed", range(12))
def test_random_facts_come_and_go(seed: int, text: str) -> None:
    draw = random.Random(seed)
    program = Program(text)
    names = {"edge": 2, "given": 1} | ({"path": 2, "even": 2, "tri": 3} if text is PATHS else {})
    names |= {"pts": 2, "store": 2, "load": 2, "un": 1} if text is VALUES else {}
    facts: set[tuple[str, tuple[int, ...]]] = set()
    size, most = draw.choice([3, 5, 8, 20]), draw.choice([3, 10, 40])
    for step in range(8):
        for _ in range(draw.randrange(1, 4)):
            name = draw.choice(list(names))
            count = draw.randrange(1, most)
            rows = [tuple(draw.randrange(size) for _ in range(names[name])) for _ in range(count)]
            if draw.random() < 0.4 or step < 2:
                program.add(name, rows)
                facts |= {(name, row) for row in rows}
                continue
            there = sorted(row for other, row in facts if other == name)
            if draw.random() < 0.7 and there:
                rows = draw.sample(there, min(len(there), draw.randrange(1, 4)))
            program.remove(name, rows)
            facts -= {(name, row) for row in rows}
        looks = draw.random()
        if looks < 0.15:
            continue
        if looks < 0.25:
            program.query("edge(x, y), given(y)")  # which sees the facts that there are
        if looks < 0.4:
            program.run(draw.choice(list(program.relations)))
        program.run()
        scratch = Program(text, backend="reference" if size < 8 and most < 40 else "core")
        for name, row in sorted(facts):
            scratch.add(name, [row])
        check_agree(program, scratch)


@pytest.mark.core
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [4, 30, 1000], ids=["small parts", "parts", "one part"])
def test_few_of_many_facts_are_removed(size: int, threads: int) -> None:
    """Graphs of many parts of some nodes, in tables of each kind."""
    draw = np.random.default_rng(size)
    nodes = 3000
    first = draw.integers(0, nodes, nodes * 5 // 4)
    edges = np.unique(np.stack([first, first // size * size + draw.integers(0, size, len(first))], 1), axis=0)
    edges = draw.permutation(edges)
    program = Program(TALL, limits=Limits(threads=threads))
    program.add("edge", edges)
    program.run()
    for count in (1, 5, 40):
        program.remove("edge", edges[:count])
        program.run()
        scratch = Program(TALL)
        scratch.add("edge", edges[count:])
        check_agree(program, scratch)
        program.add("edge", edges[:count])
        program.run()
    scratch = Program(TALL)
    scratch.add("edge", edges)
    check_agree(program, scratch)


@pytest.mark.core
def test_a_removal_needs_no_more_memory_than_its_limit() -> None:
    """Tables that tell what is lost count. Where there is no room for them, all is computed anew."""
    draw = np.random.default_rng(1)
    edges = draw.permutation(np.unique(draw.integers(0, 600, (1200, 2)), axis=0))
    scratch = Program(TALL)
    scratch.add("edge", edges[1:])
    outcomes = set()
    for memory in (1 << size for size in range(20, 32)):
        program = Program(TALL, limits=Limits(memory=memory))
        program.add("edge", edges)
        try:
            program.run()
        except EngineError as error:
            assert "MiB of memory" in str(error)
            outcomes.add("too much")
            continue
        program.remove("edge", edges[:1])
        program.run()
        check_agree(program, scratch)
        outcomes.add("enough")
    assert outcomes == {"too much", "enough"}
