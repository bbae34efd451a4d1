"""Factors: their kinds, as ``rules/ops/schema.dl`` has them, and their names."""

from __future__ import annotations

from collections.abc import Iterable

from .ids import Factor

PASS_THROUGH = "pass_through"
MARKED = ("reduction", "need_replication", "permutation")  # the lists of factors in a sharding rule
KINDS = (PASS_THROUGH, *MARKED)
# Where a factor may stand, ways to pass partial sums on and factors along which elements are picked are
# numbered down from these: see ``part`` in rules/partition/candidates.dl.
PASSING, PICKING = -1, -64
_LETTERS = "ijklmnopqrstuvwxyz"


def part_number(part: str, number: int) -> Factor:
    """The number of a ``part``: of a factor that an op is computed "Along" or elements are "Picked" along, or
    of a way in which partial sums are "Passed" on."""
    return Factor({"Along": number, "Picked": PICKING - number, "Passed": PASSING - number}[part])


def factor_name(factor: int) -> str:
    """The name of a factor in a sharding rule, as Shardy writes it: i, j, ..., z, z_1, ..."""
    return _LETTERS[factor] if factor < len(_LETTERS) else f"z_{factor - len(_LETTERS) + 1}"


def maps_text(maps: Iterable[Iterable[Iterable[int]]], operands: int) -> str:
    """The factors of each dimension of the operands and of the results: ``([i, k], [k])->([i])``."""
    tensors = [f"[{', '.join(''.join(map(factor_name, dim)) for dim in dims)}]" for dims in maps]
    return f"({', '.join(tensors[:operands])})->({', '.join(tensors[operands:])})"


def loop_name(loop: int) -> str:
    """The name of a factor as the loop of an op, as MLIR writes it: d0, d1, ..."""
    return f"d{loop}"
