"""Plans: the steps of rules, with the rows expected and found after each."""

from __future__ import annotations

import pytest
from shardlog.datalog import Program
from shardlog.engine import EngineError

TEXT = """
.type Pair = [a: number, b: number]
.decl e(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- e(x, y).
path(x, z) :- path(x, y), e(y, z), !e(z, x), z < 100.
.decl counted(x: number, n: number, p: Pair)
counted(x, n, [x, 1]) :- e(x, _), n = sum y : { e(x, y) }.
.decl first(a: number, s: number)
first(a, a + s) :- counted(_, _, [a, s]), s = range(1, 3).
.output path, counted, first
"""


@pytest.mark.core
def test_rows_after_each_step() -> None:
    program = Program(TEXT)
    program.add("e", [(1, 2), (2, 3), (3, 1), (3, 4)])
    plan = program.plan()
    written = {rule.text: [(s.step, s.rows) for s in rule.steps] for rule in plan.rules}
    assert written == {
        "path(x, y) :- e(x, y).": [("e", 4)],
        "path(x, z) :- path(x, y), e(y, z), !e(z, x), z < 100.": [
            ("path of the last round", 5),
            ("e where x = path.y", 4),
            ("not e where x = e.y, y = path.x", 1),
            ("e.y < 100", 1),
        ],
        "counted(x, n, [x, 1]) :- e(x, _), n = sum y : { e(x, y) }.": [
            ("e", 4),
            ("sum e.y : { e where x = e.x }", 4),
        ],
        "first(a, a + s) :- counted(_, _, [a, s]), s = range(1, 3).": [
            ("range(1, 3)", 2),
            ("counted", 6),
            ("fields of counted.p", 6),
            ("counted.p[1] = range(1, 3)", 3),
        ],
    }
    assert "  expected  rows" in str(plan).splitlines()
    scratch = Program(TEXT)
    scratch.add("e", [(1, 2), (2, 3), (3, 1), (3, 4)])
    scratch.run()
    assert [program.rows(name) for name in program.outputs] == [scratch.rows(n) for n in scratch.outputs]


@pytest.mark.core
def test_expected_rows_follow_sizes_and_shared_keys() -> None:
    program = Program(
        ".decl a(x: number)\n.decl b(x: number, y: number)\n.decl r(y: number)\nr(y) :- a(x), b(x, y)."
    )
    program.add("a", [(x,) for x in range(50)])
    program.add("b", [(x % 100, x) for x in range(1000)])
    (rule,) = program.plan().rules
    assert [step.rows for step in rule.steps] == [50, 500]
    assert rule.steps[0].expected == 50 and 400 < rule.steps[1].expected < 600
    assert (rule.applied, rule.tuples) == (1, 500)


def test_the_reference_has_no_plans() -> None:
    with pytest.raises(EngineError, match="only the compiled evaluator counts"):
        Program(TEXT, backend="reference").plan()
