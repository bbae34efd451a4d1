"""Shardy's own tests, through Shardy and through shardlog.

    SHARDY=<a checkout of openxla/shardy> python -m shardlog.tests.shardy.conformance [-v] [FILE ...]

Each file is split at `// -----`. What is expected is what the Shardy in jaxlib makes of a piece, not what the
file says: of the tests of propagation by the passes of their RUN line, of all others by the reference
pipeline. Where no function is called main, the first one that no other calls is. Prints a table: how many
pieces a file has, how many are equal and different, in how many the tests expect an error (verification.py
compares these), and why the others are not compared; -v says what differs.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import shardlog
from jaxlib.mlir import ir
from shardlog.importers.origins import drop_origins
from shardlog.tests.support.propagation_alone import propagate_alone

from ..ops import rules
from ..support import oracle, tools
from ..support.compare import differences

SINKS = ["func.func(sdy-sink-data-flow-edges)", "func.func(sdy-sink-func-data-flow-edges)"]
ALONE = re.compile(r"sdy-([a-z-]+?)-propagate")
# Where a reason is one of shardlog's own, Shardy runs the piece.
REASONS = {
    r"Dialect `(\w+)' not found": "of the dialect {}",
    r"unregistered operation '([\w.]+)'": "newer than jaxlib: {}",
    r"dynamic shape": "shardlog wants static shapes",
    r"no func\.func": "no function",
    r"does not reference a valid function": "calls what is not there",
    r"^crashed": "this Shardy ends the process",
}


@dataclass(frozen=True)
class Piece:
    """A module of a test file, and the passes of the file's RUN line."""

    file: str
    number: int
    text: str
    passes: tuple[str, ...]
    wrong: bool  # whether an error is expected

    def __str__(self) -> str:
        names = re.findall(r"func\.func (?:private |public )?@(\w+)", self.text)
        return f"{Path(self.file).stem} piece {self.number} ({', '.join(names)})"

    @property
    def option(self) -> str:
        """The pass that propagates, or that gives ops their rules, with its options; empty: there is none."""
        passes = self.passes if "propagation/test" in self.file else ()
        return next((p for p in passes if ALONE.match(p) or "populate" in p), "")


@dataclass
class Row:
    """The outcome for the pieces of a file."""

    pieces: int = 0
    equal: int = 0
    different: int = 0
    wrong: int = 0
    why: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def pieces(path: Path) -> Iterator[Piece]:
    """The modules of a test file."""
    text = path.read_text()
    run = next((line for line in text.splitlines() if "RUN:" in line), "")
    passes = tuple(
        f"func.func({name})" if "sink" in name else f"{name}{{{options}}}" if options else name
        for name, options in re.findall(r"-(sdy-[a-z-]+)(?:=[\"']?([^\"' ]*)[\"']?)?", run)
    )
    for number, piece in enumerate(re.split(r"(?m)^// -----.*$", text)):
        program = re.sub(r"(?m)^\s*//.*$", "", piece)
        if program.strip():
            yield Piece(str(path), number, program, passes, "expected-error" in piece)


def with_main(text: str) -> str:
    """The module, the first of its functions that no other calls as its main, where none is."""
    names: list[str] = re.findall(r"func\.func (?:public )?@(\w+)", text)
    if "main" in names:
        return text
    called = set(re.findall(r"call @(\w+)", text))
    first = next((name for name in names if name not in called), "")
    return re.sub(rf"@{first}\b", "@main", text)


def propagated(text: str) -> str:
    """The module after the reference pipeline, without notes of an earlier one, which shardlog drops."""
    found = oracle.propagate(text)
    with oracle.context():
        module = ir.Module.parse(found)
        drop_origins(module, found.encode())
        return str(module)


def without_rules(text: str) -> str:
    """A module of shardlog's without the rules that ops have, which it keeps to partition by."""
    try:
        return str(oracle.forked(oracle.run_passes, text, "func.func(sdy-drop-sharding-rules)"))
    except oracle.OracleError as error:
        raise ValueError(f"no module: {error}") from None


def both(piece: Piece) -> tuple[str, str]:
    """The module as shardlog leaves it and as Shardy does. Raises OracleError where Shardy cannot run it."""
    option, text = piece.option, piece.text
    if found := ALONE.match(option):
        passes = [p for p in piece.passes if p not in SINKS] + SINKS
        expected = oracle.forked(oracle.run_passes, text, *passes)
        strategy = re.search(r"propagation-strategy=([a-z-]+)", option) or found
        return propagate_alone(
            text,
            strategy=strategy[1],
            add_edges="sdy-add-data-flow-edges" in piece.passes,
            conservative="conservative-propagation=true" in option,
            keep_rules="keep-sharding-rules=true" in option,
        ), expected
    text = with_main(text)
    expected = oracle.forked(propagated, text)
    ours = shardlog.run(text, separate_groups=True, strict_shardy=True).text()
    return oracle.with_constants(without_rules(ours)), expected


def rules_differ(piece: Piece) -> list[str]:
    """The ops whose rules are not those that Shardy attaches."""
    conservative = "conservative" in piece.option
    expected = oracle.forked(rules.attached, piece.text, conservative=conservative)
    got = rules.ours(piece.text, conservative=conservative)
    with oracle.context():
        ops = list(rules.walk(ir.Module.parse(piece.text).operation))
        rows = zip(ops, got, expected, strict=True)
        return [f"{op}\n  got      {a}\n  expected {b}" for op, a, b in rows if a != b]


def reason(error: Exception) -> str:
    """Why a piece is not compared."""
    said = str(error)
    for pattern, text in REASONS.items():
        if match := re.search(pattern, said):
            return text.format(*match.groups())
    line = next(line for line in said.splitlines() if not line.endswith(":"))
    return re.sub(r'^error: "[^"]*":\d+:\d+: ', "", line)[:80]


def read_alone(piece: Piece) -> list[str]:
    """What is wrong with a run of a piece on which Shardy ends the process."""
    try:
        shardlog.run(with_main(piece.text), separate_groups=True)
    except shardlog.ShardlogError:
        return []
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    return []


def refused(piece: Piece) -> str:
    """Why Shardy refuses a piece behind propagation; empty: it does not."""
    try:
        oracle.forked(oracle.run_passes, with_main(piece.text), "sdy-propagation-pipeline")
    except oracle.OracleError as error:
        return "" if str(error).startswith("crashed") else "both refuse what is unreduced"
    return ""


def compare(piece: Piece, row: Row) -> None:
    """Runs a module both ways."""
    row.pieces += 1
    if piece.wrong:
        row.wrong += 1
        return
    try:
        found = rules_differ(piece) if "populate" in piece.option else differences(*both(piece))
    except (oracle.OracleError, ir.MLIRError) as error:
        row.why[reason(error)] += 1
        found = read_alone(piece) if str(error).startswith("crashed") else []
        if not found:
            return
    except shardlog.ShardlogError as error:
        said = reason(error) if any(re.search(p, str(error)) for p in REASONS) else refused(piece)
        if said:
            row.why[said] += 1
            return
        found = [str(error)]
    except Exception as error:
        found = [f"{type(error).__name__}: {error}"]
    row.equal += not found
    row.different += bool(found)
    if found:
        row.notes.append("\n  ".join([str(piece), *found]))


def table(path: Path, names: tuple[str, ...] = ()) -> dict[str, Row]:
    """A row for each test file of a checkout; `names` chooses files."""
    rows: dict[str, Row] = {}
    for file in sorted(path.glob("shardy/dialect/*/**/test/**/*.mlir")):
        if not names or file.stem in names:
            row = rows[str(file.relative_to(path / "shardy" / "dialect").with_suffix(""))] = Row()
            for piece in pieces(file):
                compare(piece, row)
    return rows


def main() -> None:
    """Prints the table."""
    path = tools.shardy()
    if path is None:
        sys.exit("set SHARDY to a checkout of openxla/shardy")
    warnings.simplefilter("ignore")
    rows = table(path, tuple(name for name in sys.argv[1:] if name != "-v"))
    width = max(len(name) for name in (*rows, ""))
    print(f"{'file':{width}} pieces equal different errors others")
    counts = ("pieces", "equal", "different", "wrong")
    everything = Row(*[sum(getattr(row, name) for row in rows.values()) for name in counts])
    everything.why.update(str(why) for row in rows.values() for why in row.why.elements())
    for name, row in (*rows.items(), ("all", everything)):
        others = "; ".join(f"{n} {why}" for why, n in row.why.most_common())
        print(f"{name:{width}} {row.pieces:6} {row.equal:5} {row.different:9} {row.wrong:6} {others}")
    if "-v" in sys.argv:
        for note in (note for row in rows.values() for note in row.notes):
            print(f"\n{note}")


if __name__ == "__main__":
    main()
