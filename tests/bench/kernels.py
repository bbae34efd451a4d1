"""Predicted times of a GPU's kernels beside measured ones: `python -m shardlog.tests.bench.kernels DATA...`.

It is the command `python -m shardlog.measuring compare`.
"""

from __future__ import annotations

from argparse import ArgumentParser

from shardlog.measuring import comparing


def main() -> None:
    """Prints the table."""
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    comparing.add_arguments(parser)
    comparing.compare(parser.parse_args())


if __name__ == "__main__":
    main()
