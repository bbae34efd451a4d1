"""What a run takes after one more percent of the facts: `python -m shardlog.tests.bench.updates [TUPLES]`.

Facts of closure and points-to come in a random order: all but five percent first, then a percent at a time,
each followed by a run. Then a percent is removed. A second table has what a run takes after one fact was
removed. Seconds are those of the processor, relative to a run over all facts, or over those that are left.
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np
from shardlog.datalog import Program

from .peers import CASES, Case

PARTS = 5  # percents that come one by one


def _seconds(program: Program) -> float:
    start = process_time()
    program.run()
    return process_time() - start


def updated(case: Case, tuples: int) -> tuple[int, float, list[float], float]:
    """The number of tuples of the answer; seconds of a run over all facts, of the run after each further
    percent, and of the run after a percent was removed."""
    draw = np.random.default_rng(0)
    facts = {name: draw.permutation(rows) for name, rows in case.facts(tuples).items()}
    whole, program = (Program(case.souffle()) for _ in range(2))
    for name, rows in facts.items():
        whole.add(name, rows)
        program.add(name, rows[PARTS * (len(rows) // 100) :])
    scratch = _seconds(whole)
    program.run()
    runs = []
    for part in range(PARTS):
        for name, rows in facts.items():
            percent = len(rows) // 100
            program.add(name, rows[part * percent : (part + 1) * percent])
        runs.append(_seconds(program))
    count = whole.count(case.answer)
    assert program.count(case.answer) == count
    for name, rows in facts.items():
        program.remove(name, rows[: len(rows) // 100])
    return count, scratch, runs, _seconds(program)


def without(case: Case, relation: str, place: float, tuples: int) -> tuple[int, float, float]:
    """The number of tuples that are left without one fact, seconds of a run over the other facts, and of one
    after that fact was removed."""
    facts = case.facts(tuples)
    whole, program = (Program(case.souffle()) for _ in range(2))
    fact = int(place * (len(facts[relation]) - 1))
    for name, rows in facts.items():
        program.add(name, rows)
        whole.add(name, np.delete(rows, fact, 0) if name == relation else rows)
    scratch = _seconds(whole)
    program.run()
    program.remove(relation, facts[relation][fact : fact + 1])
    removed = _seconds(program)
    count = whole.count(case.answer)
    assert program.count(case.answer) == count
    return count, scratch, removed


def main() -> None:
    """Prints a row for each program."""
    tuples = int(sys.argv[1]) if sys.argv[1:] else 5_000_000
    print("| program | tuples | all facts, s | first percent | others | a percent removed |")
    print("|---|---|---|---|---|---|")
    for name in ("closure", "points-to"):
        count, scratch, (first, *others), removed = updated(CASES[name], tuples)
        rest = f"{min(others) / scratch:.2f} to {max(others) / scratch:.2f}"
        shares = f"{first / scratch:.2f} | {rest} | {removed / scratch:.2f}"
        print(f"| {name} | {count:,} | {scratch:.2f} | {shares} |", flush=True)
    print("\n| program | removed fact | tuples left | all other facts, s | it was removed |")
    print("|---|---|---|---|---|")
    for name, relation, fact, place in (
        ("chain", "edge", "first", 0.0),
        ("chain", "edge", "last", 1.0),
        ("chain", "edge", "middle", 0.5),
        ("closure", "edge", "any", 0.5),
        ("points-to", "assign", "any", 0.5),
    ):
        count, scratch, removed = without(CASES[name], relation, place, tuples)
        print(f"| {name} | {fact} | {count:,} | {scratch:.2f} | {removed / scratch:.2f} |", flush=True)


if __name__ == "__main__":
    main()
