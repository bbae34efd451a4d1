"""Factors: their kinds, as ``rules/ops/schema.dl`` has them, and their names."""

from __future__ import annotations

PASS_THROUGH = "pass_through"
MARKED = ("reduction", "need_replication", "permutation")  # what a sharding rule says of its other factors
KINDS = (PASS_THROUGH, *MARKED)
# What counts as a factor of a way to compute an op, less the number of a way or factor: partial sums that are
# passed on, and what is picked of a factor. See rules/partition/candidates.dl.
PASSING, PICKING = -1, -64
_LETTERS = "ijklmnopqrstuvwxyz"


def factor_name(factor: int) -> str:
    """The name of a factor in a sharding rule, as Shardy writes it: i, j, ..., z, z_1, ..."""
    return _LETTERS[factor] if factor < len(_LETTERS) else f"z_{factor - len(_LETTERS) + 1}"


def loop_name(loop: int) -> str:
    """The name of a factor as the loop of an op, as MLIR writes it: d0, d1, ..."""
    return f"d{loop}"
