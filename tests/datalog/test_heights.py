"""Proofs are of the least height, whichever strata they go through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardlog.datalog import Program
from shardlog.engine.language.syntax import Atom
from shardlog.engine.provenance import search
from shardlog.engine.provenance.matching import Extents, Matcher
from shardlog.engine.provenance.proof import Proof
from shardlog.engine.provenance.search import ProofSearch

from ..engine.test_random_programs import NAMES, facts
from ..support.drawing import drawing
from .test_random_programs import RULES, Facts, program

BACKENDS = pytest.mark.parametrize("backend", ["core", "reference"])


pytestmark = pytest.mark.core


def height(made: Program, fact: str) -> int:
    return made.explain(fact).height


# `far(9)` is found first, from `long`, whose proofs are of height 3; from `near` it follows later, in less.
STRATA = """
.decl e(x: number, y: number)
e(0, 1). e(1, 2). e(2, 9). e(0, 5). e(5, 9).
.decl long(x: number)
long(y) :- e(0, y), y < 2.
long(y) :- long(x), e(x, y).
.decl far(x: number)
far(x) :- long(x), x > 2.
far(5) :- e(0, 5).
far(y) :- far(x), e(x, y).
.decl last(n: number)
last(x) :- far(x), !long(0), x > 5.
.decl counted(n: number)
counted(n) :- n = count : { far(_) }.
"""


@BACKENDS
def test_heights_of_earlier_strata_count(backend: Any) -> None:
    program = Program(STRATA, backend=backend)
    program.run()
    assert [height(program, f"long({x})") for x in (1, 2, 9)] == [1, 2, 3]
    assert [height(program, f"far({x})") for x in (5, 9)] == [1, 2]
    assert height(program, "last(9)") == 3
    assert height(program, "counted(2)") == 1


@BACKENDS
def test_a_fact_of_a_relation_with_rules_has_no_height(backend: Any) -> None:
    program = Program(
        ".decl a(x: number)\n.decl b(x: number)\na(1).\nb(2). b(3) :- a(1).\n"
        "b(x + 2) :- b(x), x < 6.\n.decl c(x: number)\nc(0) :- b(5). c(0) :- b(4).",
        backend=backend,
    )
    program.add("b", [(9,)])
    program.run()
    assert {f: height(program, f) for f in ("b(2)", "b(9)", "b(3)", "b(4)", "b(5)", "c(0)")} == {
        "b(2)": 0, "b(9)": 0, "b(3)": 1, "b(4)": 1, "b(5)": 2, "c(0)": 2
    }  # fmt: skip


@BACKENDS
def test_a_relation_that_starts_from_its_own_facts_has_the_heights_of_its_rounds(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(
        ".decl e(x: number, y: number)\ne(1, 2). e(2, 3). e(3, 1).\n"
        ".decl a(x: number)\n.decl b(x: number)\na(1). a(3).\nb(y) :- a(x), e(x, y).\n"
        "a(y) :- b(x), e(x, y).",
        backend=backend,
    )
    program.add("b", [(7,)])
    program.run()
    monkeypatch.setattr(search, "compile_heights", None)  # nothing is found once more
    facts = ("a(1)", "a(2)", "a(3)", "b(1)", "b(2)", "b(3)", "b(7)")
    assert [height(program, fact) for fact in facts] == [0, 2, 0, 1, 1, 3, 0]


@BACKENDS
def test_facts_that_come_later_make_proofs_lower(backend: Any) -> None:
    program = Program(
        ".decl e(x: number, y: number)\n.decl p(x: number, y: number)\np(x, y) :- e(x, y).\n"
        "p(x, z) :- p(x, y), e(y, z).",
        backend=backend,
    )
    program.add("e", [(i, i + 1) for i in range(9)])
    program.run()
    assert height(program, "p(0, 9)") == 9
    program.add("e", [(0, 8)])
    program.run()
    assert height(program, "p(0, 9)") == 2


@BACKENDS
def test_equivalence_costs_no_height(backend: Any) -> None:
    program = Program(
        ".decl e(x: number, y: number)\ne(1, 2). e(2, 3). e(3, 4).\n"
        ".decl same(x: number, y: number) eqrel\nsame(x, y) :- e(x, y), x < 3.\n"
        "same(x, y) :- same(1, x), e(x, y).\n.decl on(x: number)\non(x) :- same(4, x).",
        backend=backend,
    )
    program.run()
    assert [height(program, f) for f in ("same(1, 2)", "same(3, 1)", "same(4, 1)", "on(2)")] == [1, 1, 2, 3]


@BACKENDS
def test_what_is_chosen_subsumed_or_numbered_has_heights(backend: Any) -> None:
    program = Program(
        ".decl e(x: number, y: number)\ne(1, 2). e(2, 3). e(1, 3).\n"
        ".decl tree(x: number, y: number) choice-domain y\ntree(1, 1). tree(x, y) :- tree(_, x), e(x, y).\n"
        ".decl far(x: number, n: number)\nfar(1, 0). far(y, n + 1) :- far(x, n), e(x, y).\n"
        "far(x, n) <= far(x, m) :- m < n.\n"
        ".decl numbered(x: number, n: number)\nnumbered(x, n * 2) :- tree(_, x), n = $.\n"
        ".decl grows(x: number)\n.limitsize grows(n=5)\ngrows(x) :- tree(x, x).\ngrows(x + 1) :- grows(x).\n"
        ".decl all(x: number)\nall(x) :- far(x, 1), numbered(x, _).",
        backend=backend,
    )
    program.run()
    facts = ("tree(1, 1)", "tree(1, 3)", "far(3, 1)", "numbered(3, 4)", "grows(4)", "all(3)")
    assert [height(program, fact) for fact in facts] == [0, 1, 1, 2, 4, 3]


# ---- Random programs, and every derivation that there is ------------------------------------------------


def derivations(made: Program, search: ProofSearch) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """All tuples that rules give from tuples, each with these."""
    rules = search.rules
    everything = Extents(lambda name: made._inside.rows(name))
    matcher = Matcher(rules, everything, everything)

    def held(body: tuple[Any, ...], bindings: Any, premises: Any) -> Iterator[Any]:
        if not body:
            yield bindings, premises
        elif isinstance(body[0], Atom):
            for row, more in matcher.held(body[0], everything, bindings):
                yield from held(body[1:], more, (*premises, (body[0].name, row)))
        else:
            for more in matcher.literal(body[0], bindings):
                yield from held(body[1:], more, premises)

    for name, clauses in search._clauses.items():
        rows = made._inside.rows(name)
        for _, clause in clauses:
            for bindings, premises in held(rules.ordered(clause), rules.key(clause), ()):
                for row in rows:
                    if all(matcher.equal(t, v, bindings) for t, v in zip(clause.head.args, row, strict=True)):
                        yield (name, row), premises


def heights(made: Program, search: ProofSearch) -> dict[Any, int]:
    """The least height of every tuple, by looking at all derivations until nothing gets less."""
    heights: dict[Any, int] = {}
    for name in made.relations:
        if name not in search._derived:
            heights.update({(name, row): 0 for row in made._inside.rows(name)})
        heights.update({(name, row): 0 for row in made._inside.facts(name)})
    steps = list(derivations(made, search))
    grows = True
    while grows:
        before = dict(heights)
        for key, premises in steps:
            if all(p in heights for p in premises):
                above = 1 + max((heights[p] for p in premises), default=0)
                heights[key] = min(above, heights.get(key, above))
        for name in search._eqrels:
            close(name, heights)
        grows = before != heights
    return heights


def close(name: str, found: dict[Any, int]) -> None:
    """A pair of an equivalence is as high as the highest pair on the way from one member to the other."""
    pairs = {row: h for (relation, row), h in found.items() if relation == name}
    for (a, b), h in list(pairs.items()):
        for pair in ((b, a), (a, a), (b, b)):
            pairs[pair] = min(h, pairs.get(pair, h))
    members = {a for a, _ in pairs}
    for via in members:
        for a in members:
            for b in members:
                if (a, via) in pairs and (via, b) in pairs:
                    h = max(pairs[a, via], pairs[via, b])
                    pairs[a, b] = min(h, pairs.get((a, b), h))
    found.update({(name, row): h for row, h in pairs.items()})


def height_of(proof: Proof) -> int:
    return max(map(height_of, proof.premises), default=0) + (proof.source is not None)


@given(RULES, st.lists(facts(), min_size=1, max_size=2))
@drawing(10)
def test_every_proof_is_of_the_least_height(found: Any, steps: list[Facts]) -> None:
    compiled = program(found)
    for added in steps:
        for name, rows in added.items():
            compiled.add(name, rows)
        compiled.run()
    search = compiled._search
    expected = heights(compiled, search)
    for name in NAMES:
        for row in compiled._inside.rows(name):
            proof = search.proof(name, row)
            assert proof is not None
            assert not any(step.open for step in proof.steps())
            if (name, row) in expected:  # else its proofs go through tuples that are gone
                found_heights = (search.height(name, row), height_of(proof))
                assert (name, row, *found_heights) == (name, row, *[expected[name, row]] * 2)
