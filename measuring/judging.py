"""How far predictions are from measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log

from ..api import run
from .data import Measurement

SHORT = 10.0  # microseconds of a short program
_NEAR = 0.25  # the relative error of a prediction that counts as near


@dataclass(frozen=True)
class Judged:
    """The number of programs, the part with predictions near the measurement, and the mean error."""

    count: int
    within: float
    error: float


@dataclass(frozen=True)
class JudgedKind:
    """Programs of a kind, and the long ones among them."""

    all: Judged
    long: Judged


def estimated(text: str, topology: str) -> float:
    """The microseconds that a program takes as `shardlog cost` says."""
    return float(run(text).partition().cost(topology).seconds) * 1e6


def judged(pairs: Iterable[tuple[Measurement, float]]) -> list[tuple[str, JudgedKind]]:
    """By kind, then of all: rows and the microseconds that are said."""
    pairs_of: dict[str, list[tuple[float, float]]] = {}
    for row, microseconds in pairs:
        pairs_of.setdefault(row.kind, []).append((row.busy, microseconds))
    every = [pair for some in pairs_of.values() for pair in some]
    return [(kind, _kind(some)) for kind, some in (*sorted(pairs_of.items()), ("all", every))]


def judgement(judged: Judged) -> str:
    """A line of it."""
    return f"{judged.count}, {judged.within:.0%} within a quarter, mean error {judged.error:.2f}"


def _kind(pairs: Sequence[tuple[float, float]]) -> JudgedKind:
    return JudgedKind(_judged(pairs), _judged([pair for pair in pairs if pair[0] >= SHORT]))


def _judged(pairs: Sequence[tuple[float, float]]) -> Judged:
    ratios = [microseconds / busy for busy, microseconds in pairs]
    if not ratios:
        return Judged(0, 0.0, 1.0)
    near = sum(1 for ratio in ratios if abs(ratio - 1) <= _NEAR)
    least = 1e-3  # of what nothing is said of
    error = exp(sum(abs(log(max(ratio, least))) for ratio in ratios) / len(ratios))
    return Judged(len(ratios), near / len(ratios), error)
