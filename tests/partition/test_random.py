"""Random programs, partitioned, compute what they compute on one device; see ``random_programs``."""

from __future__ import annotations

import pytest

from . import random_programs


@pytest.mark.parametrize("seed", range(10))
def test_random_programs(seed: int) -> None:
    found = [random_programs.checked(seed, number) for number in range(10)]
    assert [wrong for wrong in found if wrong] == []


@pytest.mark.parametrize("op", random_programs.NAMES)
def test_every_op(op: str) -> None:
    found = [random_programs.checked(0, number, [op]) for number in range(2)]
    assert [wrong for wrong in found if wrong] == []
