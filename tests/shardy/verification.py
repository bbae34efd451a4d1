"""Shardy's own tests of what is valid, through its verifier and through shardlog.

    SHARDY=<a checkout of openxla/shardy> python -m shardlog.tests.verification [-v] [FILE ...]

The files of `shardy/dialect/sdy/ir/test`, and of `import/test` where passes refuse, split at `// -----`. What
the verifier or the import passes in jaxlib refuse, `shardlog run` must refuse with status 2 and one message,
and what they accept must run, but for dynamic shapes and tuples. Modules with several functions are run once
for each function that no other calls; one that should be valid, but is too new for jaxlib, function by
function. Prints a table; -v prints the messages.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from jaxlib.mlir import ir
from shardlog import cli

from ..support import oracle, tools

TESTS = ("shardy/dialect/sdy/ir/test/*.mlir", "shardy/dialect/sdy/transforms/import/test/*.mlir")
MAIN = "func.func @main() {\n  return\n}\n"  # for modules without a function
LIMITS = ("dynamic shape", "tuple type", "hands on what is unreduced")
_MESSAGE = re.compile(r"\S+: error: .+\n(  hint: .+\n)?")


@dataclass
class Row:
    """The outcome for the pieces of a file: how many both refuse, both accept; and the differences."""

    refused: int = 0
    accepted: int = 0
    different: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


def refusal(text: str, passes: Sequence[str] = ()) -> str | None:
    """The errors of Shardy's verifier and passes about a module."""
    try:
        oracle.run_passes(text, *passes)
    except oracle.OracleError as error:
        return str(error)
    return None


def programs(text: str) -> list[str]:
    """A valid module once for each of its functions that no other calls, with that one as its main."""
    if "func.func" not in text:
        return [text + MAIN]
    programs = []
    with oracle.context():
        called = set(re.findall(r"call @(\w+)", text))
        names = [n for n in re.findall(r"func\.func (?:private |public )?@(\w+)", text) if n not in called]
        for name in names:
            module = ir.Module.parse(text)
            for op in module.body.operations:
                symbol = ir.StringAttr(op.attributes["sym_name"]).value if "sym_name" in op.attributes else ""
                if symbol == name:
                    op.attributes["sym_name"] = ir.StringAttr.get("main")
                elif symbol in names:
                    op.operation.erase()
            programs.append(str(module))
    return programs


def pieces(text: str) -> Iterator[str]:
    """The modules of a test file."""
    for piece in re.split(r"(?m)^// -----.*$", text):
        wrong = "expected-error" in piece
        piece = re.sub(r"(?m)^\s*//.*$", "", piece)
        if wrong or not oracle.forked(refusal, piece):
            yield piece
        else:
            meshes = "\n".join(re.findall(r"(?m)^sdy\.mesh .*$", piece)) + "\n"
            yield from (meshes + function for function in re.findall(r"(?ms)^func\.func .*?^}$", piece))


def run(text: str) -> tuple[int, str]:
    """The exit status of `shardlog run`, and what it says."""
    with tempfile.TemporaryDirectory() as folder:
        path, said = Path(folder, "m.mlir"), io.StringIO()
        path.write_text(text)
        with redirect_stderr(said), redirect_stdout(io.StringIO()):
            status = cli.main(["run", str(path), "-o", str(path.with_suffix(".out"))])
        return status, said.getvalue().replace(f"{folder}/", "")


def compare(name: str, text: str, passes: Sequence[str], row: Row) -> None:
    """Runs one piece of a file both ways."""
    try:
        against = oracle.forked(refusal, text, passes)
    except oracle.OracleError as error:
        row.messages.append(f"{name}: the verifier {error}")
        return
    for program in [text] if against else programs(text):
        try:
            status, said = run(program)
        except Exception as error:
            row.different.append(f"{name}: {type(error).__name__}: {error}")
            continue
        row.messages.append(f"{name}: {said.strip()}")
        if against and (status != 2 or not _MESSAGE.fullmatch(said)):
            row.different.append(f"{name}: status {status}, {said!r}, expected: {against}")
        elif not against and status and not any(limit in said for limit in LIMITS):
            row.different.append(f"{name}: {said}")
        elif against:
            row.refused += 1
        else:
            row.accepted += 1


def table(path: Path, names: tuple[str, ...] = ()) -> dict[str, Row]:
    """A row for each test file of a checkout; `names` chooses files."""
    rows: dict[str, Row] = {}
    for file in (file for pattern in TESTS for file in sorted(path.glob(pattern))):
        imports = "import/test" in str(file)
        if file.stem not in names if names else imports and "expected-error" not in file.read_text():
            continue
        row = rows[file.stem] = Row()
        for number, piece in enumerate(pieces(file.read_text())):
            compare(f"{file.stem} piece {number}", piece, oracle.BEFORE if imports else (), row)
    return rows


def main() -> None:
    """Prints the table."""
    path = tools.shardy()
    if path is None:
        sys.exit("set SHARDY to a checkout of openxla/shardy")
    rows = table(path, tuple(name for name in sys.argv[1:] if name != "-v"))
    print(f"{'file':40} refused accepted different")
    for name, row in rows.items():
        print(f"{name:40} {row.refused:7} {row.accepted:8} {len(row.different):9}")
    refused, accepted = (sum(getattr(r, n) for r in rows.values()) for n in ("refused", "accepted"))
    print(f"{'all':40} {refused:7} {accepted:8} {sum(len(r.different) for r in rows.values()):9}")
    for row in rows.values():
        for line in (*row.different, *(row.messages if "-v" in sys.argv else ())):
            print(line)


if __name__ == "__main__":
    main()
