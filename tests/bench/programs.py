"""Programs that people have: `python -m shardlog.tests.bench.programs --checkout PATH ...` prints a table.

A checkout is a folder with programs in Soufflé's dialect: files (.dl, .project) that no other file of it
includes. Each is compiled. If there are files for all of its inputs, it runs in a process of its own, and
with Soufflé's interpreter too if that is there, over the same facts; outputs are compared as sets of lines. A
program without outputs puts out the relations that no rule reads. Facts are looked for in the folder of the
program, in folders below it, and in ZIP files there; `--facts NAME=FOLDER` names them for programs of a name.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

from shardlog.datalog import Program
from shardlog.engine import DatalogError, EngineError

from .processes import Taken, shardlog, taken

_SUFFIXES = (".dl", ".project")
_INCLUDE = re.compile(r'^\s*[#.]\s*include\s+"([^"]+)"', re.MULTILINE)
_FUNCTOR = re.compile(r"^\s*\.functor\s+(\w+)", re.MULTILINE)
_FILES = re.compile(r"\.input\s+(\w+)[^\n]*?filename\s*=\s*\"([^\"]+)\"")


@dataclass(frozen=True)
class Compiled:
    """A program, why it is refused (empty where it is not), the number of its rules, and seconds."""

    program: Program | None
    refused: str
    functors: int
    seconds: float


def roots(checkout: Path) -> list[Path]:
    """The programs of a checkout: files that no other file includes."""
    files = [file for suffix in _SUFFIXES for file in sorted(checkout.rglob(f"*{suffix}"))]
    included = {
        (file.parent / name).resolve()
        for file in files
        for name in _INCLUDE.findall(file.read_text(errors="replace"))
    }
    return [file for file in files if file.resolve() not in included]


def texts(program: Path) -> Iterator[str]:
    """The text of a program, and of the files that it includes."""
    waiting, seen = [program.resolve()], set[Path]()
    while waiting:
        file = waiting.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        yield (text := file.read_text(errors="replace"))
        waiting += [(file.parent / name).resolve() for name in _INCLUDE.findall(text)]


def compiled(program: Path, checkout: Path, macros: Mapping[str, str]) -> Compiled:
    """What compiling a program gives. Functions stand in for its functors: only a run would call them."""
    start = process_time()
    names = {name for text in texts(program) for name in _FUNCTOR.findall(text)}
    functors: dict[str, Callable[..., Any]] = dict.fromkeys(names, _absent)
    wrapper = f'#include "{program.resolve()}"\n'
    try:
        made = Program(wrapper, include_from=[checkout.resolve()], macros=macros, functors=functors)
    except DatalogError as error:
        first, count = error.diagnostics[0], len(error.diagnostics) + sum(error.more.values())
        place = f"{Path(first.file).name}:{first.line}"
        return Compiled(
            None, f"{place}: {first.message} ({count} in all)", len(names), process_time() - start
        )
    except EngineError as error:
        return Compiled(None, str(error), len(names), process_time() - start)
    return Compiled(made, "", len(names), process_time() - start)


def _absent(*columns: Any) -> Any:
    raise EngineError("no function is there for the functor")


def facts_of(program: Path, needed: Sequence[str], named: Path | None, work: Path) -> Path | None:
    """A folder with all of the files that a program reads."""
    for file in program.parent.glob("*.zip"):
        with zipfile.ZipFile(file) as packed:
            packed.extractall(work / file.stem)
    near = [program.parent, *(f for f in program.parent.rglob("*") if f.is_dir())]
    unpacked = [work, *(f for f in work.rglob("*") if f.is_dir())]
    for folder in [named] if named else [*near, *unpacked]:
        if all((folder / name).is_file() for name in needed):
            return folder
    return None


def inputs(program: Path, made: Program) -> list[str]:
    """The files that a program reads."""
    files = dict(pair for text in texts(program) for pair in _FILES.findall(text))
    return [files.get(name, f"{name}.facts") for name, r in made.relations.items() if r.input]


def wrapped(program: Path, made: Program, work: Path) -> Path:
    """A program that includes another one, and has outputs if that has none."""
    text = f'#include "{program.resolve()}"\n'
    if not made.outputs:
        read = {name for text in texts(program) for name in re.findall(r"(\w+)\s*\(", _bodies(text))}
        ends = [name for name, r in made.relations.items() if not r.input and name not in read]
        text += "".join(f".output {name}\n" for name in ends)
    wrapper = work / "wrapper.dl"
    wrapper.write_text(text)
    return wrapper


def _bodies(text: str) -> str:
    """The bodies of rules in a text."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    return " ".join(re.findall(r":-(.*?)\.\s", text + "\n", flags=re.DOTALL))


def lines(folder: Path) -> dict[str, set[str]]:
    """The lines of each file of a folder."""
    return {file.name: set(file.read_text().splitlines()) for file in sorted(folder.iterdir())}


def row(
    program: Path, checkout: Path, macros: Mapping[str, str], named: Mapping[str, Path], souffle: str
) -> list[str]:
    """The cells of a program."""
    name = str(program.relative_to(checkout.parent))
    found = compiled(program, checkout, macros)
    if found.program is None:
        return [name, f"no: {found.refused}", "", "", "", "", "", ""]
    compiles = "yes" if not found.functors else f"yes, with {found.functors} functors"
    cells = [name, compiles, f"{found.seconds:.2f}"]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for part in ("facts", "ours", "theirs"):
            (work / part).mkdir()
        needed = inputs(program, found.program)
        facts = facts_of(program, needed, named.get(program.stem), work / "facts")
        if found.functors or facts is None or not needed:
            return [*cells, "no functions" if found.functors else "no facts", "", "", "", ""]
        wrapper = wrapped(program, found.program, work)
        given = ["-F", str(facts), "-I", str(checkout.resolve()), *(f"-M{n}={b}" for n, b in macros.items())]
        command = shardlog(["datalog", "-w", str(wrapper), *given])
        ours = _run([*command, "-D", str(work / "ours")])
        if isinstance(ours, str):
            return [*cells, f"no: {ours}", "", "", "", ""]
        tuples = sum(map(len, lines(work / "ours").values()))
        cells += [f"{tuples:,}", f"{ours.processor:.2f}", f"{ours.mebibytes:.0f}"]
        if not souffle:
            return [*cells, "", ""]
        theirs = _run([souffle, "-w", str(wrapper), *given, "-D", str(work / "theirs")])
        if isinstance(theirs, str):
            return [*cells, f"Soufflé: {theirs}", ""]
        equal = lines(work / "ours") == lines(work / "theirs")
        ratios = f"{ours.processor / theirs.processor:.2f} / {ours.mebibytes / theirs.mebibytes:.2f}"
        return [*cells, "yes" if equal else "no", ratios]


def _run(command: list[str]) -> Taken | str:
    """What a command takes, or the last line of its errors."""
    try:
        return taken(command)
    except SystemExit as error:
        return str(error).splitlines()[-1]


def main() -> None:
    """Prints a row for each program of the checkouts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkout", type=Path, action="append", required=True, metavar="PATH")
    parser.add_argument("--facts", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("-M", "--macro", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--souffle", default=shutil.which("souffle") or "", help="Soufflé's program")
    options = parser.parse_args()
    named = {name: Path(folder) for name, _, folder in (each.partition("=") for each in options.facts)}
    macros = {name: body for name, _, body in (each.partition("=") for each in options.macro)}
    titles = ["program", "compiles", "s", "tuples", "s", "MiB", "equal", "time / memory ratio"]
    print("|" + "|".join(f" {title} " for title in titles) + "|\n" + "|---" * len(titles) + "|")
    for checkout in options.checkout:
        if not checkout.is_dir():
            sys.exit(f"{checkout}: no such folder; expected a checkout with programs")
        for program in roots(checkout):
            print(
                "|"
                + "|".join(f" {cell} " for cell in row(program, checkout, macros, named, options.souffle))
                + "|",
                flush=True,
            )


if __name__ == "__main__":
    main()
