"""Predicted times of a GPU's kernels beside measured ones, by kind of program.

For each kind: the number of programs, the share within a quarter of the measured time, and the mean error,
the geometric mean of predicted over measured, or the other way around.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from .data import read_rows
from .judging import SHORT, estimated, judged

HEAD = f"{'kind':14} {'ops':>5} {'within':>7} {'error':>6}   {'long ops':>8} {'within':>7} {'error':>6}"


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of ``compare``."""
    parser.add_argument("data", nargs="+", help="files of measured programs")
    parser.add_argument("--topology", default="h100", help="the machine (default: h100)")
    parser.add_argument("--ops", action="store_true", help="show each program, lowest ratio first")


def compare(given: Namespace) -> None:
    """Prints the table."""
    rows = read_rows(given.data)
    pairs = [(row, estimated(row.text, given.topology)) for row in rows]
    print(HEAD)
    for kind, errors in judged(pairs):
        line = f"{kind:14} {errors.all.count:>5} {errors.all.within:>7.0%} {errors.all.error:>6.2f}"
        long = errors.long
        print(f"{line}   {long.count:>8} {long.within:>7.0%} {long.error:>6.2f}" if long.count else line)
    print(f"long ops take {SHORT:g} us and more; within: a quarter")
    if given.ops:
        for row, microseconds in sorted(pairs, key=lambda pair: pair[1] / pair[0].busy):
            figures = f"{microseconds / row.busy:6.2f} {microseconds:10.1f} {row.busy:10.1f}"
            print(f"{figures}  {row.kind}: {row.name}")
