"""Soufflé's own tests, run on this engine: ``python -m shardlog.tests.engine.souffle CHECKOUT``.

CHECKOUT is a checkout of Soufflé's repository. Each program of its ``tests`` is evaluated over its facts,
and what it puts out is compared, as sets of lines, with the files beside it; of a program that Soufflé
rejects, the lines of the errors are. Prints the programs that are not equal, and a table.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import select
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from sqlite3 import connect
from tempfile import mkdtemp

from shardlog.datalog import Limits, Program
from shardlog.engine import DatalogError, Diagnostic, EngineError
from shardlog.engine.language import diagnostics
from shardlog.errors import ShardlogError

CATEGORIES = (
    "evaluation",
    "example",
    "interface",
    "profile",
    "provenance",
    "scheduler",
    "semantic",
    "syntactic",
)
# Of what is not equal: "functors" are code in C++; a "driver" in C++ adds facts that no file has.
OUTCOMES = ("equal", "different", "rejected", "failed", "slow", "crashed", "functors", "driver")


@dataclass(frozen=True)
class Case:
    """A test: its program, where its facts and the expected files are, and whether Soufflé rejects it."""

    name: str
    program: Path
    facts: Path
    expected: Path
    negative: bool
    folders: tuple[Path, ...] = ()
    printed: bool = False


def cases(checkout: Path) -> Iterator[Case]:
    """The tests that the checkout's lists of tests name."""
    for category in CATEGORIES:
        listed = checkout / "tests" / category / "CMakeLists.txt"
        if not listed.is_file():
            continue
        text = re.sub(r"^\s*#.*$", "", listed.read_text(), flags=re.MULTILINE)
        for call, inside in re.findall(r"(\w+)\s*\(\s*([^()]*)\)", text):
            words = inside.split()
            if not call.endswith(("_test", "_helper")) or call.startswith(("add_", "function")) or not words:
                continue
            name = words[words.index("TEST_NAME") + 1] if "TEST_NAME" in words else words[0]
            folder = listed.parent / name
            program = folder / f"{name}.dl"
            if not program.is_file():
                continue
            negative = "negative" in call or "NEGATIVE" in words
            sets = words[words.index("FACTS_DIR_NAMES") + 1 :] if "FACTS_DIR_NAMES" in words else [""]
            after = words[words.index("INCLUDE_DIRS") + 1 :] if "INCLUDE_DIRS" in words else []
            folders = tuple(folder / word for word in after if (folder / word).is_dir())
            for each in sets:
                full = f"{category}/{name}" + (f"/{each}" if each else "")
                printed = "output_stdout" in call
                facts = folder / (each or "facts")
                yield Case(full, program, facts, folder / each, negative, folders, printed)


# ---- One test ---------------------------------------------------------------------------------------------


def outcome(case: Case, limits: Limits) -> tuple[str, str, str]:
    """What becomes of a test, run in the folder that is the current one, and why; and by what its warnings
    differ."""
    try:
        folders = [case.program.parent, *case.folders]
        program = Program(case.program, include_from=folders, limits=limits, magic=True)
    except DatalogError as error:
        return (*rejected(case, error), warned(case, error.warnings))
    return (*evaluated(case, program), warned(case, program.warnings()))


def evaluated(case: Case, program: Program) -> tuple[str, str]:
    """What becomes of a program without errors, and why."""
    try:
        with Path("out").open("w") as out, redirect_stdout(out):
            program.read_inputs(case.facts, program.outputs)
            program.run_outputs()
            program.write_outputs(None if case.printed else ".")
    except (ShardlogError, EngineError) as error:
        if case.negative:
            return "equal", "rejected while running"
        return ("slow" if "limit was reached" in str(error) else "failed"), str(error)
    if case.negative:
        text = next(case.program.parent.glob("*.err")).read_text(errors="replace")
        first = next((line for line in text.splitlines() if line.startswith("Error")), text[:80])
        return "different", f"accepted; Soufflé: {first}"
    return compared(case)


def queried(case: Case) -> None:
    """Write what queries beside the expected files give of the databases written, as Soufflé's tests do:
    ``a.sqlite.output.script`` is for ``a.csv``."""
    for script in case.expected.glob("*.sqlite.output.script"):
        written = Path(script.name.removesuffix(".script"))
        if written.is_file():
            with closing(connect(written)) as database:
                rows = database.execute(script.read_text()).fetchall()
            texts = ("\t".join(map(str, row)) + "\n" for row in rows)
            Path(script.name.split(".")[0] + ".csv").write_text("".join(texts))


def compared(case: Case) -> tuple[str, str]:
    """Whether the files that were written have the lines of those that are expected."""
    queried(case)
    expected = {file.name: file for file in case.expected.glob("*.csv")}
    found = {file.name: file for file in Path().glob("*.csv")}
    for name, file in sorted(expected.items()):
        if name not in found:
            return "different", f"{name} is not written"
        ours, theirs = lines(found[name].read_text()), lines(file.read_text())
        if ours != theirs:
            more, less = sorted(ours - theirs)[:3], sorted(theirs - ours)[:3]
            counts = f"{len(ours)} lines for {len(theirs)}"
            return _by_driver(case), f"{name}: {counts}; only ours {more}; only theirs {less}"
    out = case.expected / f"{case.program.stem}.out"
    if out.is_file() and not case.name.startswith(
        ("interface/", "provenance/")
    ):  # it is that of other programs
        ours, theirs = lines(Path("out").read_text()), lines(out.read_text())
        if ours != theirs:
            return (
                "different",
                f"standard output: {sorted(ours - theirs)[:3]} for {sorted(theirs - ours)[:3]}",
            )
    return "equal", ""


def _by_driver(case: Case) -> str:
    """The outcome of a program whose files differ."""
    driver = case.program.parent / "driver.cpp"
    return "driver" if driver.is_file() and "insert(" in driver.read_text() else "different"


def lines(text: str) -> set[str]:
    """The lines of a file, with six digits of what is a float."""
    number = r"(?<![\w.])-?\d+\.\d+(?:e[-+]?\d+)?(?![\w.])"
    return {re.sub(number, lambda m: f"{float(m[0]):.6g}", line.rstrip()) for line in text.splitlines()}


def rejected(case: Case, error: DatalogError) -> tuple[str, str]:
    first = error.diagnostics[0]
    if any("user functors" in d.message or "C++" in d.message for d in error.diagnostics):
        return "functors", first.message
    if not case.negative:
        return "rejected", f"{first.line}: {first.code}: {first.message}"
    text = next(case.program.parent.glob("*.err")).read_text(errors="replace")
    theirs = {int(n) for n in re.findall(r"^Error.* at line (\d+)$", text, re.MULTILINE)}
    theirs = theirs or {int(n) for n in re.findall(r"^Error:? .*line (\d+)", text, re.MULTILINE)}
    said_without_line = {"E0403": "Unable to stratify", "E0202": "is defined multiple times"}
    ours = {
        d.line
        for d in error.diagnostics
        if d.line in theirs or said_without_line.get(d.code, "\0") not in text
    }
    if theirs and ours != theirs:
        said = {d.line: f"{d.code} {d.message}" for d in error.diagnostics}
        only = [f"{n}: {said[n]}" for n in sorted(ours - theirs)][:3]
        return "different", f"lines: only ours {only}; only theirs {sorted(theirs - ours)[:8]}"
    return "equal", ""


_KINDS = {  # how Soufflé's warnings begin
    "Deprecated type": "W0101",
    "Deprecated [a-z]+ qualifier": "W0102",
    r"Deprecated \$": "W0103",
    "doc comment": "W0104",
    "overriding previous pragma": "W0105",
    "No rules/facts": "W0401",
    "No subsumptive rule": "W0402",
    "Variable .* only occurs once": "W0403",
    "Variable .* marked as singleton": "W0404",
}


def warned(case: Case, warnings: Iterable[Diagnostic]) -> str:
    """By what the warnings differ: "" where the same are said of the same lines."""
    said = next(iter(case.program.parent.glob("*.err")), None)
    text = said.read_text(errors="replace") if said is not None else ""
    theirs = {
        (file, int(line), next((code for kind, code in _KINDS.items() if re.match(kind, message)), message))
        for message, file, line in re.findall(r"^Warning: (.*) in file (\S+) at line (\d+)", text, re.M)
    }
    ours = {(Path(w.file).name, w.line, w.code) for w in warnings if w.code in _KINDS.values()}
    return "" if ours == theirs else f"only ours {sorted(ours - theirs)}; only theirs {sorted(theirs - ours)}"


def apart(case: Case, limits: Limits) -> tuple[str, str, str]:
    """``outcome`` in a process of its own, which may crash or hang."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        try:
            os.chdir(mkdtemp())
            found = outcome(case, limits)
            rmtree(Path.cwd())
        except BaseException as error:
            found = ("crashed", f"{type(error).__name__}: {error}", "")
        with os.fdopen(write, "wb") as stream:
            pickle.dump(found, stream)
        os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], 2 * (limits.seconds or 60) + 10)
    with os.fdopen(read, "rb") as stream:
        data = stream.read() if ready else b""
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return pickle.loads(data) if data else ("crashed" if ready else "slow", "", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=lambda path: Path(path).resolve())
    parser.add_argument("--only", default="", help="a regular expression for names")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each program")
    parser.add_argument("--json", type=Path, help="write name -> [outcome, why]")
    options = parser.parse_args()
    limits = Limits(seconds=options.seconds, memory=3 << 30)
    diagnostics._SHOWN = 1_000  # all lines are compared
    table: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    results = {}
    differing = 0
    for case in cases(options.checkout):
        if not re.search(options.only, case.name) or case.name in results:
            continue
        result, why, warnings = results[case.name] = apart(case, limits)
        if warnings and result == "equal":
            differing += 1
            print(f"w {case.name}: {warnings[:220]}", flush=True)
        table[case.negative][result] += 1
        if result != "equal" or (options.only and why):
            mark = "-" if case.negative else "+"
            print(f"{mark} {result:9} {case.name}: {' '.join(why.split())[:220]}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    print(f"\n{'':12}" + "".join(f"{name:>11}" for name in (*OUTCOMES, "all")))
    for negative, name in ((False, "accepted"), (True, "rejected")):
        counts = table[negative]
        print(f"{name:12}" + "".join(f"{counts[o]:11}" for o in OUTCOMES) + f"{counts.total():11}")
    print(f"\nequal programs with other warnings: {differing}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
