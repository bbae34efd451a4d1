"""Every tuple of a program has a proof, and the checker agrees."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardlog.datalog import Program
from shardlog.engine.provenance.proof_check import Checker

from .test_program import ALL, FACTS


@pytest.mark.parametrize("backend", ["core", "reference"])
@given(steps=st.lists(FACTS, max_size=3))
@settings(max_examples=50, deadline=None)
def test_every_tuple_has_a_proof(backend: Any, steps: list[dict[str, Any]]) -> None:
    if backend == "core":
        pytest.importorskip("shardlog.engine._core")
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
