"""Programs that are compiled for accelerators, beside each other: what they send, how long that takes as we
say, and figures of one over those of another."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean
from typing import Any, NamedTuple

from shardlog.cost.exchange import prices
from shardlog.cost.hlo import hlo_sends
from shardlog.cost.machine import Machine
from shardlog.rulebook.book import RuleBook


class Moved(NamedTuple):
    """The bytes that a device sends, the seconds of all collectives one after the other, and their number."""

    bytes: float
    seconds: float
    collectives: int


def moved(hlo: str, machine: Machine) -> Moved:
    """What optimised HLO sends on a machine; loops count their turns."""
    price = prices(machine, RuleBook().traits).collective
    assert price is not None
    sent, seconds, count = 0.0, 0.0, 0
    for each, times in hlo_sends(hlo):
        paid = price(each.kind, each.group, (), ())
        seconds += times * (paid.once + paid.byte * each.bytes) / machine.link.bandwidth
        sent, count = sent + times * each.bytes, count + times
    return Moved(sent, seconds, count)


def print_row(*cells: str) -> None:
    """Prints a row of a Markdown table."""
    print(f"| {' | '.join(cells)} |", flush=True)


def print_means(ways: Sequence[str], ratios: Sequence[Sequence[Sequence[float]]], empty: int) -> None:
    """Prints a row for each way with the geometric means over programs, after so many ``empty`` cells.

    ``ratios`` has for each program and way one ratio for each figure.
    """
    for way, programs in zip(ways, zip(*ratios, strict=True), strict=True):
        means = map(geometric_mean, zip(*programs, strict=True))
        print_row("geometric mean", way, *[""] * empty, *(f"{mean:.2f}" for mean in means))


def over(ours: Any, theirs: Any, figures: Sequence[str]) -> list[float]:
    """The figures of one program, by their names, over those of another one."""
    pairs = ((getattr(ours, figure), getattr(theirs, figure)) for figure in figures)
    return [max(mine, 1e-9) / max(other, 1e-9) for mine, other in pairs]
