"""Shardy's own propagation tests, through Shardy and through shardlog.

    SHARDY=<a checkout of openxla/shardy> python -m shardlog.tests.conformance [-v] [FILE ...]

Each file is split at `// -----`; its RUN line says which passes the pieces go through. What is expected is
what the Shardy in jaxlib makes of a piece, not what the file says. Prints a table: how many functions a file
has, how many are equal and different, and how many Shardy cannot run, and why; -v says what differs.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import shardlog
from jaxlib.mlir import ir
from shardlog.tests.support.propagation_alone import propagate_alone

from ..ops import rules
from ..support import oracle, tools
from ..support.compare import differences

TESTS = "shardy/dialect/sdy/transforms/propagation/test"
SINKS = ["func.func(sdy-sink-data-flow-edges)", "func.func(sdy-sink-func-data-flow-edges)"]


@dataclass(frozen=True)
class Piece:
    """A module of a test file, and the passes of the file's RUN line."""

    file: str
    number: int
    text: str
    passes: tuple[str, ...]

    @property
    def option(self) -> str:
        """The pass that propagates, with its options."""
        return next(p for p in self.passes if "propagat" in p or "populate" in p)


@dataclass
class Row:
    """The outcome for the functions of a file."""

    functions: int = 0
    equal: int = 0
    different: int = 0
    why: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def pieces(path: Path) -> Iterator[Piece]:
    """The modules of a test file."""
    text = path.read_text()
    run = next(line for line in text.splitlines() if "RUN:" in line)
    passes = tuple(
        f"func.func({name})" if "sink" in name else f"{name}{{{options}}}" if options else name
        for name, options in re.findall(r"-(sdy-[a-z-]+)(?:=[\"']([^\"']*)[\"'])?", run)
    )
    split = "split-input-file" in run
    for number, piece in enumerate(re.split(r"(?m)^// -----.*$", text) if split else [text]):
        if "func.func" in piece:
            yield Piece(path.name, number, re.sub(r"(?m)^\s*//.*$", "", piece), passes)


def functions(text: str) -> dict[str, str]:
    """The functions of a module by name, as text."""
    with oracle.context():
        return {
            ir.StringAttr(op.attributes["sym_name"]).value: str(op)
            for op in ir.Module.parse(text).body.operations
            if op.operation.name == "func.func"
        }


def both(piece: Piece) -> tuple[str, str]:
    """The module as shardlog leaves it and as Shardy does. Raises OracleError where Shardy cannot run it."""
    option, text = piece.option, piece.text
    if "pipeline" in option:
        expected = oracle.forked(oracle.propagate, text)
        return oracle.with_constants(
            shardlog.run(text, separate_groups=True, strict_shardy=True).text()
        ), expected
    passes = [p for p in piece.passes if p not in SINKS] + SINKS
    expected = oracle.forked(oracle.run_passes, text, *passes)
    found = re.match(r"sdy-([a-z-]+?)-propagate", option)
    strategy = re.search(r"propagation-strategy=([a-z-]+)", option) or found
    assert strategy is not None
    return propagate_alone(
        text,
        strategy=strategy[1],
        add_edges="sdy-add-data-flow-edges" in piece.passes,
        conservative="conservative-propagation=true" in option,
        keep_rules="keep-sharding-rules=true" in option,
    ), expected


def compare_rules(piece: Piece, row: Row) -> None:
    """Counts the functions whose ops have the rules that Shardy attaches."""
    conservative = "conservative" in piece.option
    expected = oracle.forked(rules.attached, piece.text, conservative=conservative)
    got = rules.ours(piece.text, conservative=conservative)
    with oracle.context():
        module = ir.Module.parse(piece.text)
        ops = list(rules.walk(module.operation))
        starts = [i for i, op in enumerate(ops) if op.name == "func.func"]
        for start, end in zip(starts, [*starts[1:], len(ops)], strict=True):
            wrong = [i for i in range(start, end) if got[i] != expected[i]]
            row.functions += 1
            row.equal += not wrong
            row.different += bool(wrong)
            row.notes += [f"{ops[i]}\n  got      {got[i]}\n  expected {expected[i]}" for i in wrong]


def compare(piece: Piece, row: Row) -> None:
    """Runs a module both ways and counts its functions."""
    if "populate" in piece.option:
        compare_rules(piece, row)
        return
    names = re.findall(r"func\.func (?:private |public )?@(\w+)", piece.text)
    place = f"{piece.file} piece {piece.number} ({', '.join(names)})"
    row.functions += len(names)
    try:
        ours, theirs = both(piece)
        found = differences(ours, theirs)
    except oracle.OracleError as error:
        row.why[str(error).strip().splitlines()[-1][:60]] += len(names)
        return
    except Exception as error:
        row.different += len(names)
        row.notes.append(f"{place}: {type(error).__name__}: {error}")
        return
    mine, expected = functions(ours), functions(theirs)
    equal = len(names) if not found else sum(n in mine and mine[n] == expected.get(n) for n in names)
    if found and equal == len(names):
        equal -= 1
    row.equal += equal
    row.different += len(names) - equal
    if found:
        row.notes.append("\n  ".join([place, *found]))


def table(path: Path, names: tuple[str, ...] = ()) -> dict[str, Row]:
    """A row for each test file of a checkout; `names` chooses files."""
    rows: dict[str, Row] = {}
    for file in sorted((path / TESTS).glob("*.mlir")):
        if not names or file.stem in names:
            row = rows[file.stem] = Row()
            for piece in pieces(file):
                compare(piece, row)
    return rows


def main() -> None:
    """Prints the table."""
    path = tools.shardy()
    if path is None:
        sys.exit("set SHARDY to a checkout of openxla/shardy")
    names = tuple(name for name in sys.argv[1:] if name != "-v")
    rows = table(path, names)
    print(f"{'file':46} functions equal different not run")
    everything = Row(
        *[sum(getattr(r, n) for r in rows.values()) for n in ("functions", "equal", "different")]
    )
    everything.why.update(str(why) for row in rows.values() for why in row.why.elements())
    for name, row in (*rows.items(), ("all", everything)):
        lost = sum(row.why.values())
        reasons = "; ".join(f"{n} x {why}" for why, n in row.why.items())
        print(f"{name:46} {row.functions:9} {row.equal:5} {row.different:9} {lost:7} {reasons}")
    if "-v" in sys.argv:
        for row in rows.values():
            print("", *row.notes, sep="\n")


if __name__ == "__main__":
    main()
