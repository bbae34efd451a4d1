"""The engine beside compiled Datalog, as whole processes: `python -m shardlog.tests.bench.datalog --peers`.

Soufflé compiles each program to C++, and Ascent, a crate, to Rust; both are built in a temporary folder, and
building is not timed. Facts come from files of lines, and the number of tuples of the answer is printed. The
program ``files`` reads and writes facts and derives nothing; DuckDB does the same with its reader. The last
three columns are what shardlog takes, relative to the engine.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .datalog import ANDERSEN, CLOSURE, GENERATION, Program
from .processes import Taken, bytecode, shardlog, taken

Array = np.ndarray[Any, np.dtype[np.int64]]
Facts = dict[str, Array]


# ---- Programs, and facts for about so many tuples ----------------------------------------------------------


def _graph(tuples: int) -> Facts:
    nodes = round((tuples / 0.61) ** 0.5)  # two edges a node: about 0.61 of all pairs are connected
    return {"edge": _distinct(1, 2 * nodes, nodes, nodes)}


def _chain(tuples: int) -> Facts:
    nodes = np.arange(round((2 * tuples) ** 0.5), dtype=np.int64)
    return {"edge": np.stack([nodes, nodes + 1], 1)}


def _tree(tuples: int) -> Facts:
    """Nine levels below the root, which has as many children as it takes; other nodes have two."""
    children, levels = max(2, round((tuples * 3 / (4**9 - 1)) ** 0.5)), 9
    rows, first, above = [], 1, np.zeros(1, np.int64)
    for level in range(levels):
        each = children if level == 0 else 2
        nodes = first + np.arange(len(above) * each, dtype=np.int64)
        rows.append(np.stack([nodes, np.repeat(above, each)], 1))
        first, above = first + len(nodes), nodes
    return {"parent": np.concatenate(rows)}


def _pointers(tuples: int) -> Facts:
    scale = (tuples / 2_100_000) ** 0.5
    variables, objects = round(8000 * scale), round(500 * scale)
    return {
        "address": _distinct(2, variables // 2, variables, objects),
        "assign": _distinct(3, variables * 5 // 4, variables, variables),
        "load": _distinct(4, variables // 32, variables, variables),
        "store": _distinct(5, variables * 3 // 200, variables, variables),
    }


def _pairs(tuples: int) -> Facts:
    return {"edge": _distinct(6, tuples, 1 << 24, 1 << 24)}


def _distinct(seed: int, count: int, left: int, right: int) -> Array:
    """Distinct random pairs, in no order."""
    draw = np.random.default_rng(seed)
    drawn = draw.integers(0, left * right, count)
    _, first = np.unique(drawn, return_index=True)
    drawn = drawn[np.sort(first)]
    return np.stack([drawn // right, drawn % right], 1)


@dataclass(frozen=True)
class Case:
    """Rules, the relation that is counted or written, and the facts for about so many of its tuples."""

    rules: str
    answer: str
    facts: Callable[[int], Facts]
    writes: bool = False  # the answer is written, not counted

    def souffle(self) -> str:
        """The program in Soufflé's dialect."""
        arities = Program(self.rules, self.answer, dict).arities() or {self.answer: 2}
        lines = [f".decl {name}({_columns(arity)})" for name, arity in arities.items()]
        lines += [f".input {name}" for name in self.facts(100)]
        return "\n".join([*lines, f".{'output' if self.writes else 'printsize'} {self.answer}", self.rules])

    def ascent(self) -> str:
        """The relations and rules as Ascent's macros take them."""
        arities = Program(self.rules, self.answer, dict).arities()
        lines = [f"relation {name}({', '.join(['i64'] * arity)});" for name, arity in arities.items()]
        rules = self.rules.strip().replace(":-", "<--").replace(").", ");")
        return "\n".join([*lines, rules])


def _columns(arity: int) -> str:
    return ", ".join(f"c{i}: number" for i in range(arity))


CASES = {
    "closure": Case(CLOSURE, "path", _graph),
    "chain": Case(CLOSURE, "path", _chain),
    "generation": Case(GENERATION, "same", _tree),
    "points-to": Case(ANDERSEN, "points", _pointers),
    "files": Case("", "edge", _pairs, writes=True),
}


# ---- Engines: the command that runs a case in a folder, or why there is none -------------------------------

Command = Callable[[str, Path, int], list[str] | None]  # case, folder with its facts, threads


class AbsentError(Exception):
    """An engine that is not installed."""


def _shardlog(work: Path, souffle: str) -> Command:
    _write_facts(CASES["chain"].facts(100), work / "few")  # a first run writes bytecode
    _build(shardlog(["datalog", str(work / "chain.dl"), "-F", str(work / "few")]), work)

    def command(case: str, facts: Path, threads: int) -> list[str]:
        program = str(work / f"{case}.dl")
        arguments = [program, "-F", str(facts), "-D", str(work / "out"), "-j", str(threads)]
        return shardlog(["datalog", *arguments])

    return command


def _souffle(work: Path, souffle: str) -> Command:
    if not souffle:
        raise AbsentError("no souffle on the PATH, and none named by --souffle")
    built: dict[tuple[str, bool], str] = {}

    def command(case: str, facts: Path, threads: int) -> list[str]:
        key = (case, threads > 1)
        if key not in built:
            built[key] = str(work / f"souffle-{case}-{'several' if threads > 1 else 'one'}")
            program = str(work / f"{case}.dl")
            _build([souffle, "-w", "-j", str(threads), "-o", built[key], program], work)
        return [built[key], "-F", str(facts), "-D", str(work / "out"), "-j", str(threads)]

    return command


_MANIFEST = """
[package]
name = "peer"
version = "0.1.0"
edition = "2021"
[dependencies]
ascent = "0.8"
[profile.release]
lto = "fat"
codegen-units = 1
"""
_READER = """
fn pairs(folder: &str, name: &str) -> impl Iterator<Item = (i64, i64)> {
    let text = std::fs::read_to_string(format!("{folder}/{name}.facts")).unwrap();
    let rows: Vec<_> = text
        .lines()
        .map(|line| line.split_once('\\t').unwrap())
        .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
        .collect();
    rows.into_iter()
}
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let folder = &arguments[2];
    match arguments[1].as_str() {
"""


def _ascent_source() -> str:
    """A program that runs each case, on one thread (``closure-1``) or on all that it is given."""
    modules, arms = "", ""
    for number, (name, case) in enumerate(CASES.items()):
        if case.writes:
            continue
        for several, macro in enumerate(["ascent", "ascent_par"]):
            module = f"case{number}_{several}"
            modules += (
                f"mod {module} {{\nuse ascent::{macro};\n"
                f"{macro}! {{\npub struct Peer;\n{case.ascent()}\n}}\n}}\n"
            )
            given = "".join(f'p.{fact} = pairs(folder, "{fact}").collect();\n' for fact in case.facts(100))
            arms += (
                f'"{name}-{several + 1}" => {{\nlet mut p = {module}::Peer::default();\n{given}'
                f'p.run();\nprintln!("{{}}", p.{case.answer}.len());\n}}\n'
            )
    return f"{modules}{_READER}{arms}_ => panic!(),\n}}\n}}\n"


def _ascent(work: Path, souffle: str) -> Command:
    if shutil.which("cargo") is None:
        raise AbsentError("no cargo on the PATH")
    crate = work / "ascent"
    (crate / "src").mkdir(parents=True)
    (crate / "Cargo.toml").write_text(_MANIFEST)
    (crate / "src" / "main.rs").write_text(_ascent_source())
    try:
        _build(["cargo", "build", "--release", "--quiet", "--target-dir", str(crate / "target")], crate)
    except subprocess.CalledProcessError as error:
        raise AbsentError(f"cargo cannot build it: {error.stderr.strip().splitlines()[-1:]}") from None

    def command(case: str, facts: Path, threads: int) -> list[str] | None:
        if CASES[case].writes:
            return None
        return [str(crate / "target/release/peer"), f"{case}-{min(threads, 2)}", str(facts)]

    return command


_COPY = """
import sys, duckdb
database = duckdb.connect()
database.execute(f"set threads = {sys.argv[3]}")
table = f"read_csv('{sys.argv[1]}/edge.facts', delim='\\t', header=false)"
database.execute(f"create table edge as select distinct * from {table}")
copied = f"copy (select * from edge order by all) to '{sys.argv[2]}/edge.csv' (delimiter '\\t', header false)"
database.execute(copied)
"""


def _duckdb(work: Path, souffle: str) -> Command:
    try:
        import duckdb  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    except ImportError:
        raise AbsentError("duckdb is not installed") from None

    def command(case: str, facts: Path, threads: int) -> list[str] | None:
        if not CASES[case].writes:
            return None
        return [sys.executable, "-c", _COPY, str(facts), str(work / "out"), str(threads)]

    return command


ENGINES = {"shardlog": _shardlog, "souffle": _souffle, "ascent": _ascent, "duckdb": _duckdb}


def _build(command: list[str], folder: Path) -> None:
    subprocess.run(command, check=True, cwd=folder, capture_output=True, text=True)


# ---- Measuring ---------------------------------------------------------------------------------------------


def _best(command: list[str], threads: int, repetitions: int) -> Taken:
    """Of several runs the one that took least by the clock, and the least of the processor's time."""
    runs = [taken(command, {"RAYON_NUM_THREADS": str(threads)}) for _ in range(repetitions)]
    least = min(runs, key=lambda run: run.clock)
    return replace(least, processor=min(run.processor for run in runs))


def _count(run: Taken) -> int | None:
    """The number at the end of what was printed."""
    counted = re.search(r"(\d+)\s*$", "\n".join(run.printed))
    return int(counted[1]) if counted else None


def _write_facts(facts: Facts, folder: Path) -> None:
    folder.mkdir()
    for name, rows in facts.items():
        with (folder / f"{name}.facts").open("w") as file:
            for start in range(0, len(rows), 1 << 16):
                file.writelines(f"{x}\t{y}\n" for x, y in rows[start : start + (1 << 16)].tolist())


def _commands(work: Path, souffle: str, only: list[str] | None) -> Iterator[tuple[str, Command]]:
    for name, engine in ENGINES.items():
        if only and name not in only:
            continue
        try:
            yield name, engine(work, souffle)
        except AbsentError as reason:
            print(f"left out: {name}, for {reason}", file=sys.stderr)


def compare(tuples: int, threads: int, repetitions: int, souffle: str, only: list[str] | None) -> None:
    """Prints a row for each case, number of threads and engine; the ratios are shardlog's to that engine.

    Raises SystemExit if engines count differently."""
    with tempfile.TemporaryDirectory() as folder, bytecode():
        work = Path(folder)
        (work / "out").mkdir()
        for name, case in CASES.items():
            (work / f"{name}.dl").write_text(case.souffle())
        commands = dict(_commands(work, souffle, only))
        print(
            "| program | tuples | threads | engine "
            "| s, clock | s, processor | MiB | clock | processor | MiB |"
        )
        print("|---" * 10 + "|")
        for name, case in CASES.items():
            _write_facts(case.facts(tuples), work / name)
            for count in range(1, threads + 1):
                _compare_one(name, case, count, commands, work / name, repetitions)
            shutil.rmtree(work / name)


def _compare_one(
    name: str, case: Case, threads: int, commands: dict[str, Command], facts: Path, repetitions: int
) -> None:
    found: dict[str, Taken] = {}
    for engine, command in commands.items():
        arguments = command(name, facts, threads)
        if arguments is not None:
            found[engine] = _best(arguments, threads, repetitions)
    ours = found.get("shardlog")
    counts = {count for run in found.values() if (count := _count(run)) is not None}
    if len(counts) > 1:
        raise SystemExit(f"{name}: engines do not agree: {', '.join(map(str, sorted(counts)))} tuples")
    size = f"{counts.pop():,}" if counts else f"{_lines(facts / f'{case.answer}.facts'):,}"
    for engine, run in found.items():
        ratios = " | ".join(f"{ratio:.2f}" for ratio in _ratios(ours, run)) if ours else " | | "
        figures = f"{run.clock:.2f} | {run.processor:.2f} | {run.mebibytes:.0f}"
        print(f"| {name} | {size} | {threads} | {engine} | {figures} | {ratios} |", flush=True)


def _ratios(ours: Taken, other: Taken) -> tuple[float, float, float]:
    return (
        ours.clock / other.clock,
        ours.processor / other.processor,
        ours.mebibytes / other.mebibytes,
    )


def _lines(file: Path) -> int:
    with file.open() as lines:
        return sum(1 for _ in lines)
