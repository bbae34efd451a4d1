"""Every gain of a recorded turn has a proof that the checker accepts."""

from __future__ import annotations

import pytest
from shardlog.engine.provenance.proof import Derivations
from shardlog.engine.provenance.proof_check import Checker

from ...propagation.recorded import recorded
from ...propagation.solving import turn

CASES = [case for case in recorded() if case.gains][::60]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_gains(number: int) -> None:
    case = CASES[number]
    facts = {**case.facts(), "axis": case.mesh.facts()}
    program = turn("blocked.dl")
    proofs = Derivations(program, facts, ["becomes_sharded", "denied"])
    checker = Checker(program.plan, facts)
    rows = proofs.rows("becomes_sharded")
    assert rows
    for row in rows:
        proof = proofs.proof("becomes_sharded", row)
        assert proof is not None
        assert checker.check(proof) > 1
    for row in proofs.rows("denied"):
        proof = proofs.proof("denied", row)
        assert proof is not None
        assert checker.check(proof) > 1
