"""Ops of hundreds of operands: what explains their turns grows with the operands, not with their square."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.engine.evaluate.limits import Budget
from shardlog.engine.provenance.matching import _Matcher
from shardlog.explanations.report import report


def concatenation(operands: int) -> str:
    """A concatenation of which one operand is sharded."""
    names = [f"%a{i}" for i in range(operands)]
    arguments = ", ".join(f"{name}: tensor<8x4xf32>" for name in names)
    types, result = ", ".join(["tensor<8x4xf32>"] * operands), f"tensor<{8 * operands}x4xf32>"
    return f"""
sdy.mesh @mesh = <["x"=2]>
func.func @main({arguments} {{sdy.sharding = #sdy.sharding<@mesh, [{{?}}, {{"x", ?}}]>}}) -> {result} {{
  %0 = stablehlo.concatenate {", ".join(names)}, dim = 0 : ({types}) -> {result}
  return %0 : {result}
}}
"""


def test_the_work_of_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def counted(method: str, owner: type) -> None:
        original = getattr(owner, method)

        def count(*args: object) -> object:
            nonlocal looks
            looks += 1
            return original(*args)

        monkeypatch.setattr(owner, method, count)

    counted("look", Budget)
    counted("unified", _Matcher)

    def work(operands: int) -> int:
        nonlocal looks
        looks = 0
        report(shardlog.run(concatenation(operands)))
        return looks

    assert work(160) < 5 * work(40)
