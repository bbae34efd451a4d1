"""The command line of a fuzzer."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .fuzz import fuzz


def parser(name: str, about: str, minutes: float) -> argparse.ArgumentParser:
    """The options of ``python -m NAME``, which runs for so many minutes and keeps what it finds in a folder
    that is called like the last part of the name."""
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("--minutes", type=float, default=minutes, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=2, help="workers; default: %(default)s")
    parser.add_argument("--case", type=int, metavar="N", help="this case alone")
    keep = Path("build", name.rpartition(".")[2])
    parser.add_argument("--keep", type=Path, default=keep, help="default: %(default)s")
    return parser


def carry_out(options: argparse.Namespace, **how: Any) -> int:
    """Fuzzes as options say, and as ``how`` says to ``fuzz``; prints what is found. Returns the exit status:
    1 where anything is."""
    alone = options.case is not None
    done, found = fuzz(
        seed=options.seed,
        minutes=options.minutes,
        keep=options.keep,
        jobs=1 if alone else options.jobs,
        first=options.case if alone else 0,
        last=options.case,
        tell=lambda text: print(text, flush=True),
        **how,
    )
    print(f"{done:,} cases, {len(found)} findings" + (f", kept in {options.keep}" if found else ""))
    return int(bool(found))
