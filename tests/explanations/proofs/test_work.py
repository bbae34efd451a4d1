"""What explains turns grows with operands and priorities, not with their square."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import shardlog
from shardlog.engine.evaluate.limits import Budget
from shardlog.engine.provenance.matching import Matcher
from shardlog.explanations.questions.why import Explainer
from shardlog.explanations.report import report
from shardlog.runs.records.live import Live


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


def priorities(count: int) -> str:
    """A chain of additions of arguments that all have another priority."""
    given = '{{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}p{}]>}}'
    arguments = ", ".join(f"%a{i}: tensor<8xf32> {given.format(i)}" for i in range(count))
    chain = [f"%{i} = stablehlo.add %{i - 1}, %a{i} : tensor<8xf32>" for i in range(1, count)]
    lines = "\n  ".join(["%0 = stablehlo.negate %a0 : tensor<8xf32>", *chain])
    return f"""
sdy.mesh @mesh = <["x"=2]>
func.func @main({arguments}) -> tensor<8xf32> {{
  {lines}
  return %{count - 1} : tensor<8xf32>
}}
"""


def chain(ops: int) -> str:
    """A chain of ops that all come from one line."""
    lines = [
        f'%{i} = stablehlo.tanh %{i - 1 if i else "x"} : tensor<8xf32> loc("m.py":7:1)' for i in range(ops)
    ]
    text = "\n  ".join(lines)
    return f"""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) -> tensor<8xf32> {{
  {text}
  return %{ops - 1} : tensor<8xf32>
}}
"""


class Counter:
    """Counts calls of methods."""

    def __init__(self, patch: pytest.MonkeyPatch, *methods: tuple[type, str]) -> None:
        self.calls = 0
        for owner, name in methods:
            patch.setattr(owner, name, self.counted(getattr(owner, name)))

    def counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any) -> Any:
            self.calls += 1
            return method(*args)

        return count

    def report(self, module: str) -> int:
        """The calls that a report makes."""
        result, self.calls = shardlog.run(module), 0
        report(result.programs)
        return self.calls

    def why(self, module: str, line: str) -> int:
        """The calls that explaining all values of a line takes."""
        explanations, self.calls = shardlog.run(module).why(line), 0
        assert all(map(str, explanations))
        return self.calls


def test_ops_of_many_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Counter(monkeypatch, (Budget, "look"), (Matcher, "unified"))
    assert looks.report(concatenation(160)) < 5 * looks.report(concatenation(40))


def test_many_priorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every priority is a stage of several passes: items do not ask for each of them."""
    asked = Counter(monkeypatch, (Live, "class_of"), (Live, "statics"), (Live, "given"))
    assert asked.report(priorities(64)) < 5 * asked.report(priorities(16))


def test_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value's chain has that of the one before it: only the steps that are shown are looked at."""
    steps = Counter(monkeypatch, (Explainer, "_step"))
    assert steps.why(chain(80), "m.py:7") < 5 * steps.why(chain(20), "m.py:7")
    (*_, last) = shardlog.run(chain(80)).why("m.py:7")
    assert [step.site.value for step in last.steps] == [f"%{i}" for i in reversed(range(80))]
    assert [step.site.value for step in last.steps[77:]] == ["%2", "%1", "%0"]
    assert last.steps[-1].source.value == "%arg0"
