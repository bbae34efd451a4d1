"""LLVM's own tests of its sharding dialects, and of the dialects around them, read by shardlog.

    LLVM=<a checkout of llvm/llvm-project> [MLIR_OPT=mlir-opt] \
        python -m shardlog.tests.dialects.conformance [-v] [FILE ...]

Each file is split at `// -----`; the files are those of the dialects mesh and shard, and of their conversion
to MPI, or those that are named. Prints a table: how many pieces a file has; how many of the valid ones are
read, and how many are not; how many of those that LLVM expects an error of are refused, and how many are not.
With a mlir-opt, what is read of a piece is compared with what is read of the generic form that mlir-opt has
for it, apart from what this adds (maps that follow from the names of ops, options at their defaults):
"alike", "unlike". What that mlir-opt does not read, as it is of another version, is not counted. -v says what
is wrong.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from jaxlib.mlir import ir
from shardlog.errors import ShardlogError
from shardlog.importers.dialects.statements import in_generic_form
from shardlog.importers.sources.text import Text, make_context, parse_module

FOLDERS = ("Dialect/Mesh", "Dialect/Shard", "Conversion/MeshToMPI", "Conversion/ShardToMPI")
COLUMNS = ("pieces", "read", "not read", "refused", "not refused", "alike", "unlike", "of another version")
ADDED = (  # by mlir-opt
    r"(?m)^#map.*\n",
    r"(linalg\.memoized_)?indexing_maps = \[#map.*?\](, )?",
    r"(, )?nan_mode = #tosa.nan_mode<PROPAGATE>",
    r" \{\}(?= :)",
)
EXPECTED = re.compile(r"expected-error")
_FUNCTION = re.compile(r"^( *)(func\.func.*?^\1})", re.MULTILINE | re.DOTALL)
_GRID = re.compile(r"^ *(shard\.grid (@\w+).*)$", re.MULTILINE)
_MAP = re.compile(r"^#map.*$", re.MULTILINE)


def pieces(path: Path) -> Iterator[tuple[int, str]]:
    """The modules of a test file, by the lines at which they begin."""
    line = 1
    for part in path.read_text().split("// -----"):
        if re.sub(r"//[^\n]*", "", part).strip():
            yield line, part
        line += part.count("\n")


def functions(path: Path) -> Iterator[str]:
    """Each function with annotations of a test file, as a module with the grids that it names."""
    for _, text in pieces(path):
        text = re.sub(r"//[^\n]*", "", text) if not EXPECTED.search(text) else ""
        maps = "\n".join(_MAP.findall(text))
        grids = {name: grid.strip() for grid, name in _GRID.findall(text)}
        for _, function in _FUNCTION.findall(text):
            if "shard.shard " in function:
                named = dict.fromkeys(re.findall(r"@\w+", function))
                lines = [maps, *(grids[name] for name in named if name in grids), textwrap.dedent(function)]
                yield "\n".join(filter(None, lines)) + "\n"


def generic_form(text: str, program: str) -> str | None:
    """The generic form that mlir-opt has for a module; None where it does not read it."""
    command = [program, "--mlir-print-op-generic", "--allow-unregistered-dialect"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout if done.returncode == 0 else None


def printed(text: str) -> str:
    """A module as jaxlib prints it, once its statements are in generic form."""
    with make_context():
        found = str(ir.Module.parse(in_generic_form(text.encode(), bodies=True)))
    for pattern in ADDED:
        found = re.sub(pattern, "", found)
    return found


def outcomes(text: str, program: str) -> Iterator[tuple[str, str]]:
    """The columns in which a piece counts, each with what is said of it."""
    yield "pieces", ""
    wrong = EXPECTED.search(text) is not None
    theirs = generic_form(text, program) if program else ""
    if not wrong and theirs is None:
        yield "of another version", ""
        return
    try:
        parse_module(Text(text.encode(), "piece"))
    except ShardlogError as error:
        if "no function" not in error.message:
            yield ("refused" if wrong else "not read"), f"{error.where}: {error.message}"
            return
    yield ("not refused" if wrong else "read"), ""
    if program and theirs is not None:
        try:
            mine, other = printed(text), printed(theirs)
        except (ShardlogError, ir.MLIRError) as error:
            yield "unlike", str(error)
            return
        lines = zip(mine.splitlines(), other.splitlines(), strict=False)
        differ = [f"  {a}\n  {b}" for a, b in lines if a != b]
        yield ("unlike" if mine != other else "alike"), "\n".join(differ[:2])


def main() -> None:
    """Reads the tests of the checkout in ``LLVM``, or the files that are named."""
    warnings.simplefilter("ignore")
    verbose, names = "-v" in sys.argv[1:], [name for name in sys.argv[1:] if name != "-v"]
    root, program = Path(os.environ["LLVM"]) / "mlir" / "test", os.environ.get("MLIR_OPT", "")
    files = [*map(Path, names)] or sorted(f for folder in FOLDERS for f in (root / folder).glob("*.mlir"))
    total, width = Counter[str](), max(len(file.name) for file in files)
    print(" " * width, *(f"{name:>9}" for name in COLUMNS))
    for file in files:
        counts = Counter[str]()
        for line, text in pieces(file):
            for column, note in outcomes(text, program):
                counts[column] += 1
                if verbose and note and column in ("not read", "unlike"):
                    print(f"{file}:{line}: {column}: {note}")
                if verbose and column == "not refused":
                    match = re.search(r"expected-error.*", text)
                    print(f"{file}:{line}: not refused: {match[0] if match else ''}")
        print(f"{file.name:{width}}", *(f"{counts[name]:{max(len(name), 9)}}" for name in COLUMNS))
        total += counts
    print(f"{'all':{width}}", *(f"{total[name]:{max(len(name), 9)}}" for name in COLUMNS))


if __name__ == "__main__":
    main()
