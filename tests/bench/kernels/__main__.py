"""What is said of a GPU's kernels beside what they take: `python -m shardlog.tests.bench.kernels DATA...`.

Each file of ``DATA`` is one that ``measure`` wrote: programs of one op or of a few, and the microseconds for
which they keep the GPU busy. For each kind of program: how many there are, for how many what `shardlog cost`
says is within a quarter of that, and the mean error, the geometric mean of said over measured, or the other
way around. ``--ops`` shows each program, ``--topology`` names another machine than an H100.
"""

from __future__ import annotations

import argparse

from .data import read_rows
from .judging import MOST, judged, said

HEAD = f"{'kind':14} {'ops':>5} {'within':>7} {'error':>6}   {'long ops':>8} {'within':>7} {'error':>6}"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--topology", default="h100")
    parser.add_argument("--ops", action="store_true", help="show each program, worst first")
    given = parser.parse_args()
    rows = read_rows(given.data)
    pairs = [(row, said(row.text, given.topology)) for row in rows]
    print(HEAD)
    for kind, found in judged(pairs):
        line = f"{kind:14} {found.all.count:>5} {found.all.within:>7.0%} {found.all.error:>6.2f}"
        long = found.long
        print(f"{line}   {long.count:>8} {long.within:>7.0%} {long.error:>6.2f}" if long.count else line)
    print(f"long ops take {MOST:g} us and more; within: a quarter")
    if given.ops:
        for row, microseconds in sorted(pairs, key=lambda pair: pair[1] / pair[0].busy):
            figures = f"{microseconds / row.busy:6.2f} {microseconds:10.1f} {row.busy:10.1f}"
            print(f"{figures}  {row.kind}: {row.name}")


if __name__ == "__main__":
    main()
