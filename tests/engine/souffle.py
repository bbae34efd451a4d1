"""Soufflé's own tests, run on this engine: ``python -m shardlog.tests.engine.souffle CHECKOUT``.

CHECKOUT is a checkout of Soufflé's repository. Each program of its ``tests`` is evaluated over its facts,
and what it puts out is compared, as sets of lines, with the files beside it; of a program that Soufflé
rejects, the lines of the errors are. Prints the programs that are not equal, and a table.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import pickle
import re
import select
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardlog.engine import DatalogError, EngineError, Limits, Program, load
from shardlog.engine.language import diagnostics

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
OUTCOMES = ("equal", "different", "rejected", "failed", "slow", "crashed", "functors")


@dataclass(frozen=True)
class Case:
    """A test: its program, where its facts and the expected files are, and whether Soufflé rejects it."""

    name: str
    program: Path
    facts: Path
    expected: Path
    negative: bool
    folders: tuple[Path, ...] = ()


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
                yield Case(full, program, folder / (each or "facts"), folder / each, negative, folders)


# ---- Files ------------------------------------------------------------------------------------------------


def facts(case: Case, program: Program) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for directive in program.directives:
        if directive.kind != "input":
            continue
        options = directive.parameters
        path = case.facts / options.get("filename", options.get("name", directive.relation) + ".facts")
        if not path.is_file():
            raise EngineError(f"no facts: {path.name} ({options})")
        relation = program.relations[directive.relation]
        columns = relation.columns
        rows = []
        for number, line in enumerate(path.read_text().splitlines()):
            if number == 0 and options.get("headers") == "true":
                continue
            if options.get("rfc4180") == "true":
                cells = next(csv.reader([line], delimiter=options.get("delimiter", ",")))
            else:
                cells = line.split(options.get("delimiter", "\t")) if columns else []
            rows.append(
                tuple(value(program, c.type, c.type_name, t) for c, t in zip(columns, cells, strict=True))
            )
        found.setdefault(directive.relation, []).extend(rows)
    return found


def value(program: Program, kind: str, type_name: str, text: str) -> Any:
    """The value that a text in a file of facts stands for."""
    parsed, rest = _value(program, kind, type_name, text, False)
    if rest.strip():
        raise EngineError(f"cannot read {text!r} as a {type_name}")
    return parsed


def _value(program: Program, kind: str, type_name: str, text: str, inside: bool) -> tuple[Any, str]:
    if kind == "record":
        return _record(program, type_name, text.lstrip())
    if inside:
        end = re.match(r"\s*\"(?:[^\"\\]|\\.)*\"|[^,\])]*", text)
        assert end is not None
        text, rest = end[0].strip(), text[end.end() :]
        text = text.strip('"') if kind == "symbol" else text
    else:
        rest = ""
    if kind == "symbol":
        return text, rest
    return (float(text) if kind == "float" else int(text, 0 if "x" in text or "b" in text else 10)), rest


def _record(program: Program, type_name: str, text: str) -> tuple[Any, str]:
    branches = program.plan.branches.get(type_name)
    if branches is not None:
        head = re.match(r"\$([\w?.]+)\s*(\()?", text)
        if head is None:
            raise EngineError(f"cannot read {text!r} as a {type_name}")
        columns = branches[head[1]].columns
        text = text[head.end() :]
        values, text = _fields(program, columns, text, ")") if head[2] else ((), text)
        return (head[1], *values), text
    if text.startswith("nil"):
        return None, text[3:]
    return _fields(program, program.plan.records[type_name], text[1:], "]")


def _fields(program: Program, columns: Any, text: str, closing: str) -> tuple[tuple[Any, ...], str]:
    values = []
    for number, column in enumerate(columns):
        text = text.lstrip()
        text = text[1:] if number else text
        found, text = _value(program, column.type, column.type_name, text, True)
        values.append(found)
    text = text.lstrip()
    if not text.startswith(closing):
        raise EngineError(f"expected {closing} before {text!r}")
    return tuple(values), text[1:]


def shown(program: Program, kind: str, type_name: str, found: Any) -> str:
    """A value as Soufflé writes it."""
    if kind == "float":
        return f"{found:.6g}"
    if kind != "record":
        return str(found)
    if found is None:
        return "nil"
    branches = program.plan.branches.get(type_name)
    columns = program.plan.records[type_name] if branches is None else branches[found[0]].columns
    values = found if branches is None else found[1:]
    inside = ", ".join(shown(program, c.type, c.type_name, v) for c, v in zip(columns, values, strict=True))
    if branches is None:
        return f"[{inside}]"
    return f"${found[0]}({inside})" if values else f"${found[0]}"


def lines(program: Program, name: str, rows: list[tuple[Any, ...]], delimiter: str) -> set[str]:
    columns = program.relations[name].columns
    return {
        delimiter.join(shown(program, c.type, c.type_name, v) for c, v in zip(columns, row, strict=True))
        if columns
        else "()"
        for row in rows
    }


def written(text: str, program: Program, name: str, delimiter: str) -> set[str]:
    """Lines of an expected file, with its floats as ``shown`` has them."""
    kinds = [column.type for column in program.relations[name].columns]
    found = set()
    for line in text.splitlines():
        cells = line.split(delimiter)
        if "float" in kinds and len(cells) == len(kinds):
            cells = [f"{float(c):.6g}" if k == "float" else c for c, k in zip(cells, kinds, strict=True)]
        if any(kind == "record" for kind in kinds):
            line = re.sub(r"-?\d+\.\d+(e[-+]\d+)?", lambda m: f"{float(m[0]):.6g}", delimiter.join(cells))
        else:
            line = delimiter.join(cells)
        found.add(line)
    return found


# ---- One test ---------------------------------------------------------------------------------------------


def outcome(case: Case, backend: Any, seconds: float) -> tuple[str, str]:
    """What becomes of a test, and why."""
    try:
        program = load([case.program], include_from=[case.program.parent, *case.folders])
    except DatalogError as error:
        return rejected(case, error)
    if case.negative:
        text = next(case.program.parent.glob("*.err")).read_text(errors="replace")
        first = next((line for line in text.splitlines() if line.startswith("Error")), text[:80])
        return "different", f"accepted; Soufflé: {first}"
    try:
        names = list(
            dict.fromkeys(d.relation for d in program.directives if d.kind in ("output", "printsize"))
        )
        answers = program.evaluate(
            facts(case, program), names, backend, Limits(seconds=seconds, memory=3 << 30)
        )
    except EngineError as error:
        return ("slow" if "limit was reached" in str(error) else "failed"), str(error)
    return compared(case, program, answers)


def compared(case: Case, program: Program, answers: dict[str, list[tuple[Any, ...]]]) -> tuple[str, str]:
    checked, sizes = 0, {}
    for directive in program.directives:
        name, options = directive.relation, directive.parameters
        if directive.kind == "printsize":
            sizes[name] = len(answers[name])
        if directive.kind != "output":
            continue
        path = case.expected / options.get("filename", options.get("name", name) + ".csv")
        path = path if path.is_file() else case.expected / f"{name}.csv"
        if options.get("IO", "file") != "file" or not path.is_file():
            continue
        checked += 1
        delimiter = options.get("delimiter", "\t")
        ours = lines(program, name, answers[name], delimiter)
        text = path.read_text()
        if options.get("headers") == "true":
            text = text.partition("\n")[2]
        theirs = written(text, program, name, delimiter)
        ours, theirs = ({line.strip() for line in found} for found in (ours, theirs))
        if options.get("rfc4180") == "true":
            ours, theirs = ({line.replace('"', "") for line in found} for found in (ours, theirs))
        if ours != theirs:
            more, less = sorted(ours - theirs)[:3], sorted(theirs - ours)[:3]
            return "different", f"{name}: {len(ours)} for {len(theirs)}; only ours {more}; only theirs {less}"
    out = case.expected / f"{case.program.stem}.out"
    text = out.read_text() if out.is_file() else ""
    for name, size in sizes.items():
        checked += 1
        if f"{name}\t{size}" not in text.splitlines():
            found = re.search(rf"^{re.escape(name)}\t\d+$", text, re.MULTILINE)
            return "different", f"{name}: {size} tuples for {found and found[0]}"
    return "equal", "" if checked else "nothing to compare"


def rejected(case: Case, error: DatalogError) -> tuple[str, str]:
    first = error.diagnostics[0]
    if any("user functors" in d.message or "C++" in d.message for d in error.diagnostics):
        return "functors", first.message
    if not case.negative:
        return "rejected", f"{first.line}: {first.code}: {first.message}"
    text = next(case.program.parent.glob("*.err")).read_text(errors="replace")
    theirs = {int(n) for n in re.findall(r"^Error.* at line (\d+)$", text, re.MULTILINE)}
    theirs = theirs or {int(n) for n in re.findall(r"^Error:? .*line (\d+)", text, re.MULTILINE)}
    ours = {d.line for d in error.diagnostics}
    if theirs and ours != theirs:
        said = {d.line: f"{d.code} {d.message}" for d in error.diagnostics}
        only = [f"{n}: {said[n]}" for n in sorted(ours - theirs)][:3]
        return "different", f"lines: only ours {only}; only theirs {sorted(theirs - ours)[:8]}"
    return "equal", ""


def apart(case: Case, backend: Any, seconds: float) -> tuple[str, str]:
    """``outcome`` in a process of its own, which may crash or hang."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        try:
            found = outcome(case, backend, seconds)
        except BaseException as error:
            found = ("crashed", f"{type(error).__name__}: {error}")
        with os.fdopen(write, "wb") as stream:
            pickle.dump(found, stream)
        os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], 2 * seconds + 10)
    with os.fdopen(read, "rb") as stream:
        data = stream.read() if ready else b""
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return pickle.loads(data) if data else ("crashed" if ready else "slow", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="", help="a regular expression for names")
    parser.add_argument("--backend", default="core", choices=["core", "reference"])
    parser.add_argument("--seconds", type=float, default=20.0, help="for each program")
    parser.add_argument("--json", type=Path, help="write name -> [outcome, why]")
    options = parser.parse_args()
    diagnostics._SHOWN = 1_000  # all lines are compared
    table: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    results = {}
    for case in cases(options.checkout):
        if not re.search(options.only, case.name) or case.name in results:
            continue
        result, why = results[case.name] = apart(case, options.backend, options.seconds)
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
