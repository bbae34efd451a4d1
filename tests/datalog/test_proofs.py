"""Every tuple of a program has a proof, the checker agrees, and it does not matter who finds it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardlog.datalog import Program
from shardlog.engine.provenance.proof import Proof
from shardlog.engine.provenance.proof_check import Checker
from shardlog.engine.provenance.search import ProofSearch

from ..engine.test_random_programs import EVERYTHING, facts
from ..support.drawing import drawing
from .test_program import ALL, FACTS
from .test_random_programs import RULES, Facts, program


@pytest.mark.parametrize("backend", ["core", "reference"])
@given(steps=st.lists(FACTS, max_size=3))
@drawing(10)
def test_every_tuple_has_a_proof(backend: Any, steps: list[dict[str, Any]]) -> None:
    program = Program(ALL, backend=backend)
    facts: dict[str, list[Any]] = {}
    for added in steps:
        for name, rows in added.items():
            program.add(name, rows)
            facts.setdefault(name, []).extend(rows)
        program.run()
    search = program._search
    checker = Checker(program._program.plan, facts, search.rules)
    for name in program.relations:
        for row in program.rows(name):
            proof = search.proof(name, row)
            assert proof is not None
            assert not any(step.open for step in proof.steps())
            assert checker.check(proof)


# ---- The search, and the core that finds many steps at once ----------------------------------------------


class Untraced:
    """A store in which the core finds no proofs."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def trace(self, tables: Any) -> None:
        return None


def searched(made: Program) -> ProofSearch:
    """The search for proofs without the core."""
    store: Any = Untraced(made._inside)
    return ProofSearch(made._program.plan, made._request, made._search._written, store, limits=made.limits)


@pytest.mark.core
@given(RULES, facts())
@drawing(10)
def test_the_core_finds_proofs_as_low_as_the_search_does(found: Any, given_facts: Facts) -> None:
    compiled = program(found)
    for name, rows in given_facts.items():
        compiled.add(name, rows)
    compiled.run()
    other = searched(compiled)
    checker = Checker(compiled._program.plan, given_facts, compiled._search.rules, compiled._search.extents)
    for name in EVERYTHING:
        for row in compiled.rows(name):
            proofs = [compiled._search.proof(name, row), other.proof(name, row)]
            for proof in proofs:
                assert proof is not None
                assert not any(step.open for step in proof.steps())
                assert checker.check(proof)
            assert deep(proofs[0]) == deep(proofs[1])


def deep(proof: Proof | None) -> int:
    """The longest way from a tuple to a fact, where pairs that an equivalence adds count for nothing."""
    assert proof is not None
    found: dict[int, int] = {}
    for step in reversed(list(proof.steps())):
        waiting = [step]
        while waiting:
            missing = [p for p in waiting[-1].premises if id(p) not in found]
            waiting += missing
            if not missing:
                last = waiting.pop()
                found[id(last)] = max((found[id(p)] for p in last.premises), default=0) + bool(last.source)
    return found[id(proof)]


# Each tuple has one proof, and many rules compute what cannot be inverted.
EACH = """
.type List = [head: number, tail: List]
.type Tree = Leaf {n: number} | Node {left: Tree, name: symbol, n: number}
.decl e(x: number, y: number)
.decl start(x: number)
start(0).
.decl state(x: number, n: number)
state(x, 7) :- start(x).
/// {n} comes of {m}
state(y, n) :- state(x, m), e(x, y), n = (m * 31 + y) % 10007.
.decl list(l: List)
list([0, nil]).
list([y, [x, l]]) :- list([x, l]), e(x, y), x + y < 60.
.decl tree(t: Tree)
tree($Leaf(0)).
tree($Node($Leaf(x), cat("n", to_string(y)), y)) :- tree($Leaf(x)), e(x, y).
tree($Leaf(y)) :- tree($Node(_, name, y)), strlen(name) < 4.
.decl text(s: symbol)
text("t0").
/// {s} was {t}
text(s) :- text(t), x = to_number(substr(t, 1, 9)), e(x, y), s = cat("t", to_string(y)), match("t.*", t).
.decl weight(x: number, w: float)
weight(0, 0.5).
weight(y, w * 1.5 - 0.25) :- weight(x, w), e(x, y), w < 1000.0.
.decl bits(x: unsigned)
bits(1u).
bits((x bshl 1u) bxor 5u) :- bits(x), x < 100000u, !even(x), !list([as(x, number), nil]).
.decl even(x: unsigned)
even(x) :- e(_, y), x = to_unsigned(y), x % 2u = 0u, x > 1u.
.decl safe(x: number)
safe(x) :- e(x, _), x > 0.
.decl quotient(n: number)
quotient(n) :- e(x, _), safe(x), n = 100000 / x.
.decl named(x: number, n: number)
named(x, n) :- e(x, _), n = ord(cat("t", to_string(x))).
.decl same(x: symbol, y: symbol) eqrel
same(to_string(x), to_string(y)) :- e(x, y), x < 9.
.decl given(x: number, y: number) eqrel
given(1, 2). given(3, 2).
given(y, z) :- given(1, y), e(y, z), z > 3.
.decl degree(x: number, n: number)
degree(x, n) :- e(x, _), n = count : { e(_, y), e(y, z), y < x, z > 3 }.
.decl after(x: number)
after(x) :- start(x).
after(y) :- after(x), e(x, y), 1 = count : { e(x, _), !start(y) }, x < max z : { e(z, w), w = z + 1 }.
.decl total(x: number, n: number)
total(x, sum z + 1 : { list([z, _]) }) :- start(x).
.decl near(x: number)
near(x) :- start(x).
near(y) :- near(x), d = range(1, 4), y = x + d, d * d = 9, e(_, y).
.decl square(x: number, d: number)
square(x, d) :- e(x, _), d = range(x, 0, -3), d * d % 10 = 6, !start(d).
.decl root(x: number)
root(x) :- e(x, _), x = d * d, d = range(0, 7).
.decl many(x: number, n: number)
many(x, n) :- e(x, _), n = count : { d = range(0, x), d % 3 = 0 }, n > 11.
.decl half(x: float)
half(x) :- x = range(0.0, 3.0, 0.5), x > 1.0.
.decl outer(x: number, n: number)
outer(x, n) :- start(x), n = sum y : { e(y, _), 3 = count : { e(z, _), z > y, z < y + 4 }, y > x }.
"""
GOALS = {
    "state": 41,
    "list": 31,
    "tree": 81,
    "text": 40,
    "weight": 40,
    "bits": 16,
    "quotient": 2,
    "named": 1,
    "same": 1,
    "given": 37,
    "degree": 1,
    "after": 40,
    "total": 1,
    "near": 14,
    "square": 1,
    "root": 1,
    "many": 1,
    "half": 1,
    "outer": 1,
}


@pytest.mark.core
def test_functors_records_equivalences_and_aggregates_are_seen_through_by_the_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = Program(EACH)
    program.add("e", [(i, i + 1) for i in range(40)])
    program.run()
    other = searched(program)
    goals = [(name, row) for name in GOALS for row in program._inside.rows(name)]
    expected = [other.proof(*goal) for goal in goals]
    monkeypatch.setattr(program._search, "_step", None)  # the core asks for nothing
    for goal, proof in zip(goals, expected, strict=True):
        found = program._search.proof(*goal)
        assert found is not None
        assert proof is not None
        assert list(map(told, found.steps())) == list(map(told, proof.steps()))
    deepest = {
        name: max(deep(p) for p, g in zip(expected, goals, strict=True) if g[0] == name) for name in GOALS
    }
    assert deepest == GOALS


def told(step: Proof) -> Any:
    below = [[(p.relation, p.row) for p in each] for each in (step.premises, step.counted)]
    return step.relation, step.row, step.source, *below, dict(step.bindings), step.open
