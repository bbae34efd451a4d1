"""Random small programs: every tuple has a proof, and going on and queries give what starting anew gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardlog.datalog import Program
from shardlog.engine.provenance.proof_check import Checker

from ..engine.test_random_programs import BASE, DECLARATIONS, EVERYTHING, LAYERS, Rule, facts, rules
from ..support.drawing import drawing

Facts = dict[str, list[tuple[Any, ...]]]
RULES = st.lists(rules(), min_size=1, max_size=8)


pytestmark = pytest.mark.core


def program(found: list[Rule]) -> Program:
    return Program("\n".join([DECLARATIONS, BASE, *(rule.text() for rule in found)]), backend="core")


@given(RULES, facts())
@drawing(20)
def test_every_tuple_has_a_proof(found: list[Rule], given_facts: Facts) -> None:
    compiled = program(found)
    for name, rows in given_facts.items():
        compiled.add(name, rows)
    compiled.run()
    search = compiled._search
    checker = Checker(compiled._program.plan, given_facts, search.rules, search.extents)
    for name in EVERYTHING:
        for row in compiled.rows(name):
            proof = search.proof(name, row)
            assert proof is not None
            assert not any(step.open for step in proof.steps())
            assert checker.check(proof)


@given(RULES, st.lists(facts(), min_size=2, max_size=3))
@drawing(20)
def test_going_on_is_starting_anew(found: list[Rule], steps: list[Facts]) -> None:
    going, anew = program(found), program(found)
    for added in steps:
        for name, rows in added.items():
            going.add(name, rows)
            anew.add(name, rows)
        going.run()
    anew.run()
    assert {name: going.rows(name) for name in EVERYTHING} == {name: anew.rows(name) for name in EVERYTHING}


@given(RULES, facts(), st.data())
@drawing(20)
def test_a_query_is_a_part_of_a_run(found: list[Rule], given_facts: Facts, data: st.DataObject) -> None:
    columns = data.draw(st.sampled_from([(n, c) for layer in LAYERS[1:] for n, c in layer.items()]))
    values = {"n": st.integers(-1, 4).map(str), "s": st.sampled_from(['"k"', '"l"'])}
    terms = [data.draw(st.one_of(st.just(f"v{i}"), values[c])) for i, c in enumerate(columns[1])]
    query = f"{columns[0]}({', '.join(terms)})"
    compiled = program(found)
    for name, rows in given_facts.items():
        compiled.add(name, rows)
    before = compiled.query(query).tolist()
    compiled.run()
    assert before == compiled.query(query).tolist()
