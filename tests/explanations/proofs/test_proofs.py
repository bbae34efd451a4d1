"""Proofs from the engine, and the checker that believes none of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shardlog.engine import load
from shardlog.engine.provenance.proof import Derivations, Proof
from shardlog.engine.provenance.proof_check import ProofError, check_proof

PATHS = """
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number, n: number)
/// There is an edge from {x} to {y}.
path(x, y, 1) :- edge(x, y).
/// {z} is next to {y}, which is {n} steps from {x}.
path(x, z, n + 1) :- path(x, y, n), edge(y, z), n < 5.
.decl end(x: number)
end(y) :- edge(_, y), !edge(y, _).
.decl longest(x: number, n: number)
longest(x, n) :- path(x, _, _), n = max m : { path(x, _, m) }.
.decl many(x: number, n: number)
many(x, n) :- edge(x, _), n = count : { edge(x, y), end(y) }.
.decl same(x: number, y: number) eqrel
same(x, y) :- edge(x, y).
.output path, end, longest, many, same
"""
EDGES = {"edge": [(1, 2), (2, 3), (2, 4), (3, 5)]}


def derivations() -> tuple[Any, Derivations]:
    program = load(texts={"paths.dl": PATHS})
    return program.plan, Derivations(program, EDGES)


def prove(relation: str, *row: int) -> Proof:
    proof = derivations()[1].proof(relation, row)
    assert proof is not None
    return proof


def test_proof() -> None:
    proof = prove("path", 1, 3, 2)
    assert proof.source is not None
    assert (proof.source.file, proof.source.line) == ("paths.dl", 8)
    assert proof.sentence == "3 is next to 2, which is 1 steps from 1."
    assert [(p.relation, p.row) for p in proof.premises] == [("path", (1, 2, 1)), ("edge", (2, 3))]
    assert proof.premises[0].sentence == "There is an edge from 1 to 2."
    assert proof.premises[1].source is None


def test_aggregate() -> None:
    proof = prove("longest", 1, 3)
    assert {p.row for p in proof.counted} == {(1, 2, 1), (1, 3, 2), (1, 4, 2), (1, 5, 3)}


def test_what_does_not_hold_has_no_proof() -> None:
    assert derivations()[1].proof("path", (3, 1, 1)) is None


def test_equivalence() -> None:
    proof = prove("same", 1, 4)
    assert [p.row for p in proof.premises] == [(1, 2), (2, 4)]


@pytest.mark.parametrize("relation", ["path", "end", "longest", "many", "same"])
def test_all_proofs_pass(relation: str) -> None:
    plan, found = derivations()
    rows = found.rows(relation)
    assert rows
    for row in rows:
        proof = found.proof(relation, row)
        assert proof is not None
        assert check_proof(proof, plan, EDGES) == len(list(proof.steps()))


@pytest.mark.parametrize(
    "wrong",
    [
        replace(prove("path", 1, 3, 2), row=(1, 4, 2)),  # another conclusion
        replace(prove("path", 1, 3, 2), premises=prove("path", 1, 3, 2).premises[:1]),  # a premise is missing
        replace(prove("path", 1, 2, 1), source=None),  # not given
        replace(prove("end", 5), row=(2,), premises=(prove("path", 1, 2, 1).premises[0],)),  # denied
        replace(prove("longest", 1, 3), row=(1, 2)),  # not the greatest
        replace(prove("many", 2, 1), row=(2, 2)),  # miscounted
        replace(prove("same", 1, 4), premises=prove("same", 1, 4).premises[:1]),  # leads nowhere
    ],
    ids=lambda proof: proof.relation,
)
def test_wrong_proofs_do_not_pass(wrong: Proof) -> None:
    with pytest.raises(ProofError, match="does not follow"):
        check_proof(wrong, derivations()[0], EDGES)


@pytest.mark.parametrize("name", ["projection", "turn"])
def test_sources_stand_where_they_say(name: str) -> None:
    rules = Path(load.__code__.co_filename).parents[2] / "rules/propagation"
    for source in load([rules / "turn.dl"], key="item", include_from=[rules.parent]).plan.sources:
        lines = Path(source.file).read_text().splitlines()
        assert lines[source.line - 1].strip() == source.text.splitlines()[0]
