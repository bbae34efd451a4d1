"""What a program that was compiled for accelerators sends, and how long that takes as we say."""

from __future__ import annotations

from typing import NamedTuple

from shardlog.cost.exchange import prices
from shardlog.cost.hlo import hlo_sends
from shardlog.cost.machine import Machine


class Moved(NamedTuple):
    """The bytes that a device sends, the seconds of all collectives one after the other, and their number."""

    bytes: float
    seconds: float
    collectives: int


def moved(hlo: str, machine: Machine) -> Moved:
    """What optimised HLO sends on a machine; loops count their turns."""
    price = prices(machine).collective
    assert price is not None
    sent, seconds, count = 0.0, 0.0, 0
    for each, times in hlo_sends(hlo):
        paid = price(each.kind, each.group, (), ())
        seconds += times * (paid.once + paid.byte * each.bytes) / machine.link.bandwidth
        sent, count = sent + times * each.bytes, count + times
    return Moved(sent, seconds, count)
