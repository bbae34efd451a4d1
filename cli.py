"""The command line: ``shardlog run``, ``facts`` and ``query``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import ShardlogError

if TYPE_CHECKING:
    from .api import Result

_STRATEGIES = ("basic", "aggressive", "op-priority", "user-priority")


def parser() -> argparse.ArgumentParser:
    """The arguments of the command line."""
    from . import __version__

    top = argparse.ArgumentParser(prog="shardlog", description="Sharding propagation for StableHLO, by Datalog rules.")
    top.add_argument("--version", action="version", version=f"shardlog {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("module", metavar="MODULE", help="StableHLO as MLIR text or bytecode; - is standard input")
    common.add_argument("--mesh", metavar="AXES", help='the mesh to use, as in "data=2,model=4"')
    common.add_argument(
        "--annotate",
        metavar="VALUE=SHARDING",
        action="append",
        default=[],
        help="""annotate a value of the main function, as in '%%arg0=[{"data"}, {}]'; may be repeated""",
    )
    common.add_argument(
        "--rules", metavar="FILE", action="append", default=[], help="a file with more op rules; may be repeated"
    )
    common.add_argument("--strategy", choices=_STRATEGIES, default="user-priority", help="default: %(default)s")

    run = commands.add_parser("run", parents=[common], help="propagate shardings and write the annotated module")
    run.add_argument("-o", "--output", metavar="FILE", help="where to write; .mlirbc is bytecode (default: standard output)")
    run.add_argument("--open", action="store_true", help="leave the shardings open, as they were propagated")
    run.add_argument("--bytecode", action="store_true", help="write MLIR bytecode instead of text")
    run.add_argument("--stats", action="store_true", help="show turns, changes and seconds per stage")
    run.add_argument("--json", action="store_true", help="show what --stats shows, and unknown ops, as JSON")

    facts = commands.add_parser("facts", parents=[common], help="write the facts of a module as Soufflé .facts files")
    facts.add_argument("-o", "--output", metavar="DIR", required=True, help="the folder to write to")

    query = commands.add_parser("query", parents=[common], help="run a rule over the facts and results of a module")
    query.add_argument("query", metavar="BODY", help="the body of a rule, as in 'sharded(v, d, k, x), name(v, n)'")
    query.add_argument("--json", action="store_true", help="print rows as JSON instead of a table")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status (2: bad input)."""
    options = parser().parse_args(arguments)
    try:
        return {"run": _run, "facts": _facts, "query": _query}[options.command](options)
    except ShardlogError as error:
        print(f"shardlog: error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has gone; nothing may be flushed to it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("shardlog: interrupted", file=sys.stderr)
        return 130


def _result(options: argparse.Namespace, *, closed: bool = True) -> Result:
    from .api import run
    from .engine import DatalogError, EngineError

    with _Progress() as progress:
        try:
            return run(
                "-" if options.module == "-" else Path(options.module),
                strategy=options.strategy,
                closed=closed,
                mesh=options.mesh,
                annotate=options.annotate,
                rules=options.rules,
                progress=progress.update if progress.shown else None,
            )
        except (DatalogError, EngineError) as error:
            raise ShardlogError(str(error)) from error


class _Progress:
    """A line on the terminal that says how far the fixpoint is; nothing where no terminal watches."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()
        self.written = False

    def __enter__(self) -> _Progress:
        return self

    def update(self, number: int, turns: int) -> None:
        print(f"\r\x1b[Kpass {number + 1}: {turns:,} turns", end="", file=sys.stderr, flush=True)
        self.written = True

    def __exit__(self, *_: object) -> None:
        if self.written:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _run(options: argparse.Namespace) -> int:
    result = _result(options, closed=not options.open)
    for op in result.unknown_ops:
        times = "once" if op.count == 1 else f"{op.count} times"
        print(
            f"shardlog: warning: no rule for {op.name} ({times}, first at {op.location}): shardings stop there",
            file=sys.stderr,
        )
    bytecode = options.bytecode or (options.output or "").endswith(".mlirbc")
    data = result.bytecode() if bytecode else result.text().encode()
    if options.output:
        write_file(Path(options.output), data)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    if options.json:
        print(json.dumps(_statistics(result), indent=2), file=sys.stdout if options.output else sys.stderr)
    elif options.stats:
        _print_stages(result)
    return 0


def _statistics(result: Result) -> dict[str, Any]:
    return {
        "stages": [
            {
                "priority": s.priority,
                "level": s.level,
                "strategy": s.strategy,
                "turns": s.turns,
                "distinct": s.distinct,
                "changes": s.changes,
                "seconds": round(s.seconds, 6),
            }
            for s in result.stages
        ],
        "unknown_ops": [{"name": o.name, "count": o.count, "location": o.location} for o in result.unknown_ops],
    }


def _print_stages(result: Result) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    stages = result.stages
    total = {
        "turns": f"{sum(s.turns for s in stages):,}",
        "distinct turns": f"{sum(s.distinct for s in stages):,}",
        "changes": f"{sum(s.changes for s in stages):,}",
        "seconds": f"{sum(s.seconds for s in stages):.4f}",
    }
    for name in ("user priority", "op priority", "strategy"):
        table.add_column(name, footer="total" if name == "user priority" else "")
    for name, footer in total.items():
        table.add_column(name, justify="right", footer=footer)
    for s in stages:
        level = "any" if s.level == 9 else str(s.level)
        table.add_row(
            str(s.priority), level, s.strategy, f"{s.turns:,}", f"{s.distinct:,}", f"{s.changes:,}", f"{s.seconds:.4f}"
        )
    Console(stderr=True).print(table)


def write_file(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent or Path("."), prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise ShardlogError(f"cannot write: {error.strerror}", where=str(path), hint="choose another place with -o") from error


def _facts(options: argparse.Namespace) -> int:
    from .exporters.facts import write_facts

    count = write_facts(_result(options), Path(options.output))
    print(f"{count:,} facts in {options.output}", file=sys.stderr)
    return 0


def _query(options: argparse.Namespace) -> int:
    from .engine import DatalogError
    from .exporters.query import query

    result = _result(options)
    try:
        names, rows = query(result, options.query)
    except DatalogError as error:
        raise ShardlogError(str(error)) from error
    if options.json:
        print(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2))
        return 0
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*names, box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*map(str, row))
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
