"""The command line: ``run``, ``facts``, ``query``, those of ``explanations/`` and those of ``rulekit/``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import IO, TYPE_CHECKING, Any

from .explanations import checks
from .explanations.commands import add_commands, handlers
from .rulekit import commands as rulekit

if TYPE_CHECKING:
    from .api import Result

_STRATEGIES = ("basic", "aggressive", "op-priority", "user-priority")
_QUIET_SECONDS = 1.0  # runs that take no longer show no progress


def parser() -> argparse.ArgumentParser:
    """The arguments of the command line."""
    from . import __version__

    top = argparse.ArgumentParser(
        prog="shardlog",
        description="Decides how every tensor of a StableHLO program is sharded, by Datalog rules.",
    )
    top.add_argument("--version", action="version", version=f"shardlog {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    common = argparse.ArgumentParser(add_help=False)
    add = common.add_argument
    add("module", metavar="MODULE", help="StableHLO as MLIR text or bytecode; - is standard input")
    add("--mesh", metavar="AXES", help="the mesh of the module, as in data=2,model=4")
    annotate = """annotate a value of the main function, as in '%%arg0=[{"data"}, {}]'; may be repeated"""
    add("--annotate", metavar="VALUE=SHARDING", action="append", default=[], help=annotate)
    add("--rules", metavar="FILE", action="append", default=[], help="more op rules; may be repeated")
    add("--op-priorities", metavar="FILE", help="a list of ops in the order in which they propagate")
    add("--schedule", metavar="TACTICS", default=(), help="tactics, as in 'batch: tokens -> data', or a file")
    add("--until", metavar="TACTIC", help="stop after this tactic or user priority")
    halos = "keep to whole axes, and to factors that need no halos"
    add("--conservative", action="store_true", help=halos)
    separate = "members of a sharding group may have different shardings: each keeps its own, as in Shardy"
    add("--separate-groups", action="store_true", help=separate)
    add("--strategy", choices=_STRATEGIES, default=_STRATEGIES[-1], help="default: %(default)s")

    run = commands.add_parser("run", parents=[common], help="propagate shardings, write the annotated module")
    run.add_argument("-o", "--output", metavar="OUT", help="default: standard output; .mlirbc is bytecode")
    about = (
        "keep the run in a file, for why, why-not, conflicts, diff and others; -o says if to write the module"
    )
    run.add_argument("--save", metavar="FILE", help=about)
    notation = "of the shardings: sdy's, or GSPMD's mhlo.sharding; default: %(default)s"
    run.add_argument("--notation", choices=("sdy", "gspmd"), default="sdy", help=notation)
    run.add_argument("--open", action="store_true", help="leave the shardings open, as they were propagated")
    keep = "leave every op its rule, as an attribute sdy.sharding_rule"
    run.add_argument("--keep-rules", action="store_true", help=keep)
    run.add_argument("--stats", action="store_true", help="show turns, changes and seconds of every stage")
    stages = "show what each tactic or user priority did; -o says if to write the module"
    run.add_argument("--stages", action="store_true", help=stages)
    run.add_argument("--json", action="store_true", help="show statistics and ops without a rule as JSON")
    checks.add_fail_on(run)

    facts = commands.add_parser("facts", parents=[common], help="write the facts of a module for Soufflé")
    facts.add_argument("-o", "--output", metavar="DIR", required=True, help="the folder to write to")

    query = commands.add_parser("query", parents=[common], help="ask about a module and its shardings")
    body = "the body of a rule, as in 'argument(v, i), sharded(v, d, k, x)'"
    query.add_argument("body", metavar="QUERY", help=body)
    query.add_argument("--json", action="store_true", help="print rows as JSON instead of a table")

    add_commands(commands, common)
    checks.add_commands(commands, common)
    rulekit.add_commands(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status (1: a check found something, 2: bad input)."""
    import warnings

    options = parser().parse_args(arguments)
    for stream in ("stdin", "stdout", "stderr"):
        if getattr(sys, stream) is None:  # it was closed: as good as the null device
            setattr(sys, stream, os.fdopen(os.open(os.devnull, os.O_RDWR), "r+"))
    commands: dict[str, Callable[[argparse.Namespace], int | None]]
    commands = {"run": _run, "facts": _facts, "query": _query, **rulekit.HANDLERS}
    commands |= {**handlers(_result), **checks.handlers(_result)}
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: _warn(str(message))
            status = commands[options.command](options)
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("shardlog: interrupted", file=sys.stderr)
        return 130  # as a process that SIGINT ends
    except OSError as error:  # of standard output: others are told where they happen
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or what is left is written at exit
        if isinstance(error, BrokenPipeError):
            return 141  # as a process that SIGPIPE ends
        print(f"<stdout>: error: cannot write: {error.strerror}", file=sys.stderr)
        return 2
    except Exception as error:
        if not _bad_input(error):
            raise
        print(error, file=sys.stderr)
        return 2
    return status or 0


def _bad_input(error: Exception) -> bool:
    """Whether an error is about what the user gave, and says so."""
    from .engine import DatalogError, EngineError
    from .errors import ShardlogError

    return isinstance(error, ShardlogError | DatalogError | EngineError)


def _warn(message: str) -> None:
    print(f"shardlog: warning: {message}", file=sys.stderr)


def _run(options: argparse.Namespace) -> int:
    lints = checks.lints(options)
    module = options.output or not (options.save or options.stages)
    with _output(options.output) if module else nullcontext() as stream:
        result = _result(options, closed=not options.open)
        bytecode = (options.output or "").endswith(".mlirbc")
        if stream is not None:
            write = result.bytecode if bytecode else lambda notation: result.text(notation).encode()
            stream.write(write(options.notation))
    if options.save:
        result.save(options.save)
    report = sys.stderr if module and not options.output else sys.stdout  # it may be the module's
    found = checks.lint(result, lints)
    if options.json:
        import json
        from dataclasses import asdict

        findings = {"findings": [finding.as_json() for finding in found]} if lints else {}
        priorities = {"priorities": [asdict(a) for a in result.accounts]} if options.stages else {}
        print(json.dumps(_statistics(result) | priorities | findings, indent=2), file=report)
        return int(bool(found))
    if options.stages:
        from .exporters.stages import accounts_text

        print(accounts_text(result.accounts), file=report)
    if options.stats:
        print(stages_table(result), file=report)
    return checks.report(found, report)


def _facts(options: argparse.Namespace) -> None:
    from .exporters.facts import write_facts

    written = write_facts(_result(options), options.output)
    print(f"{written:,} facts in {options.output}", file=sys.stderr)


def _query(options: argparse.Namespace) -> None:
    from .exporters.query import Query
    from .exporters.table import table

    query = Query(options.body)  # errors in the query come before the work
    names, rows = query.names, query.run(_result(options))
    if options.json:
        import json

        print(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2))
    elif names:
        print(table(names, rows))
    else:
        print("yes" if rows else "no")


def _result(options: argparse.Namespace, *, closed: bool = True) -> Result:
    """The run that ``options`` ask for; warns of ops without a rule."""
    from pathlib import Path

    from .api import run

    with _Progress() as progress:
        result = run(
            "-" if options.module == "-" else Path(options.module),
            strategy=options.strategy,
            closed=closed,
            mesh=options.mesh,
            annotate=options.annotate,
            rules=options.rules,
            op_priorities=options.op_priorities,
            schedule=options.schedule,
            until=options.until,
            conservative=options.conservative,
            separate_groups=options.separate_groups,
            keep_rules=getattr(options, "keep_rules", False),
            progress=progress,
        )
    for op in result.unknown_ops:
        times = "once" if op.count == 1 else f"{op.count:,} times"
        reason = f" ({op.reason})" if op.reason else ""
        _warn(
            f"no rule for {op.name} ({times}, first at {op.location}): no sharding passes through it{reason}"
        )
    return result


class _Progress:
    """A bar on the terminal that says how far a run is; nothing where no terminal watches."""

    def __init__(self) -> None:
        self.quiet_until = time.monotonic() + _QUIET_SECONDS if sys.stderr.isatty() else float("inf")
        self.shown = False

    def __enter__(self) -> _Progress:
        return self

    def __call__(self, what: str, done: float) -> None:
        if time.monotonic() >= self.quiet_until:
            bar = "━" * round(40 * done)
            print(f"\r\x1b[K{bar:·<40} {what}", end="", file=sys.stderr, flush=True)
            self.shown = True

    def __exit__(self, *_: object) -> None:
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _statistics(result: Result) -> dict[str, Any]:
    """What ``--json`` shows."""
    from dataclasses import asdict

    return {
        "stages": [asdict(stage) for stage in result.stages],
        "unknown_ops": [asdict(op) for op in result.unknown_ops],
    }


def stages_table(result: Result) -> str:
    """What ``--stats`` shows: a row per stage."""
    from .exporters.table import table

    stages = result.stages
    labels = [(str(s.priority), "-" if s.level is None else str(s.level), s.strategy) for s in stages]
    numbers = [(s.turns, s.distinct, s.changes, s.seconds) for s in stages]
    total = tuple(map(sum, zip(*numbers, strict=True)))
    rows = [
        (*label, *(f"{n:,}" for n in counts), f"{seconds:.4f}")
        for label, (*counts, seconds) in zip([*labels, ("total", "", "")], [*numbers, total], strict=True)
    ]
    names = ("user priority", "op priority", "strategy", "turns", "distinct turns", "changes", "seconds")
    return table(names, rows)


@contextmanager
def _output(name: str | None) -> Iterator[IO[bytes]]:
    """Standard output, or a file that appears whole when all went well, and otherwise not at all."""
    from pathlib import Path

    from .errors import ShardlogError

    if name is None:
        yield sys.stdout.buffer
        return
    path = Path(name).resolve()
    special = path.exists() and not path.is_file()  # a device or a pipe: there is nothing to replace
    written = path if special else path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with written.open("wb") as stream:
            yield stream
        written.replace(path)
    except OSError as error:
        raise ShardlogError(f"cannot write: {error.strerror}", where=name) from error
    finally:
        if not special:
            written.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
