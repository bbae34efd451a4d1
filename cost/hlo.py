"""The communication of a compiled program, counted in its optimised HLO."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from math import prod
from typing import NamedTuple

from ..program.elements import bits_of
from .turns import HloComputation, turns

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_OP = re.compile(r"^ +(?:ROOT )?%?[\w.\-]+ = (.*?) ([a-z][\w\-]*)\(")
_TYPE = re.compile(r"\b([a-z]\w*)\[([\d,]*)\]")
_CALLED = re.compile(r"(?:calls|body|condition|to_apply)=%?([\w.\-]+)")
_TURNS = re.compile(r'known_trip_count\\?":\{\\?"n\\?":\\?"(\d+)')
_CHAINED = re.compile(r'channel_id=(\d+),.*frontend_attributes=\{[^}]*chain_id="\d+"')
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_START = "-start"
_TAKEN = re.compile(r"\(\(((?:[^()]|\([^()]*\))*)\)")  # layouts have parentheses, too
_SCATTERS = "all-reduce-scatter"  # XLA for TPUs uses this name if a device keeps a part of a sum


def hlo_bytes(text: str) -> float:
    """The bytes that a device sends in the ring model. Loops count all iterations, branches all of their
    branches."""
    return sum(sent for _, sent in hlo_collectives(text).values())


def hlo_collectives(text: str) -> dict[str, tuple[int, float]]:
    """The number of collectives of each kind that a device takes part in, and the bytes that it sends in the
    ring model. Loops count all iterations, branches all of their branches."""
    total: dict[str, tuple[int, float]] = {}
    for each, times in hlo_sends(text):
        count, before = total.get(each.kind, (0, 0.0))
        total[each.kind] = count + times, before + each.bytes * times
    return {kind: total[kind] for kind in KINDS if kind in total}


class HloCollective(NamedTuple):
    """A collective: its kind, the devices of a group, and the bytes that each sends in the ring model."""

    kind: str
    group: int
    bytes: float


def hlo_sends(text: str) -> Iterator[tuple[HloCollective, int]]:
    """The collectives that a device takes part in, and how often each runs."""
    chained = set[str]()  # collectives that overlap with a chain of fusions appear in each of them
    for line, times, inside in _executed(text):
        if chain := _CHAINED.search(line):
            if chain[1] in chained:
                continue
            chained.add(chain[1])
        if (sends := _sent(line)) is not None:
            if sends.kind == "all-reduce" and inside.startswith(_SCATTERS):
                sends = HloCollective("reduce-scatter", sends.group, sends.bytes / 2)
            yield sends, times


def hlo_cycles(text: str) -> int:
    """The cycles that XLA for TPUs estimates for ops; it has no estimate for collectives. Zero for other
    devices."""
    return sum(int(n) * times for line, times, _ in _executed(text) for n in _CYCLES.findall(line))


def _executed(text: str) -> Iterator[tuple[str, int, str]]:
    """The lines of a program that are ops, in the order in which they run; how often each runs; and their
    computations."""
    lines, entry, name = dict[str, list[str]](), "", ""
    for line in text.splitlines():
        if begun := _COMPUTATION.match(line):
            name = begun[2]
            lines[name] = []
            entry = name if begun[1] else entry
        elif name:
            lines[name].append(line)

    @cache
    def read(name: str) -> HloComputation:
        return HloComputation(lines.get(name, ()))

    def of(computation: str, times: int) -> Iterator[tuple[str, int, str]]:
        for line in lines[computation]:
            yield line, times, computation
            for name in _called(line):
                if name in lines:
                    yield from of(name, times * _turns(line, computation, read))

    return of(entry, 1) if entry else iter(())


def _called(line: str) -> list[str]:
    branches = re.search(r"branch_computations=\{(.*?)\}", line)
    names = re.findall(r"%?([\w.\-]+)", branches[1]) if branches else []
    names += re.findall(r"(?:true|false)_computation=%?([\w.\-]+)", line)
    return [*_CALLED.findall(line), *names]


def _turns(line: str, inside: str, read: Callable[[str], HloComputation]) -> int:
    """How often an op runs its computations: as XLA says, or as a loop counts; once if unknown."""
    if count := _TURNS.search(line):
        return int(count[1])
    counted = turns(line, read(inside), read) if " while(" in line else None
    return 1 if counted is None else counted


def _sent(line: str) -> HloCollective | None:
    match = _OP.match(line)
    kind = match[2].removesuffix(_START) if match else ""
    if match is None or kind not in KINDS:
        return None
    sizes = [
        prod(map(int, filter(None, dims.split(",")))) * _bytes(type_)
        for type_, dims in _TYPE.findall(match[1])
    ]
    if match[2].endswith(_START):  # operands come before results
        if nested := _TAKEN.match(match[1]):
            taken = len(_TYPE.findall(nested[1]))
            sizes = sizes[taken : 2 * taken]
        elif kind == "collective-permute":
            sizes = sizes[1:2]
        elif kind != "all-reduce":
            sizes = sizes[len(sizes) // 2 :]
    size, n = sum(sizes), _group(line)
    shares = {"all-reduce": 2 * (n - 1) / n, "reduce-scatter": n - 1, "collective-permute": 1}
    return HloCollective(kind, n, size * shares.get(kind, (n - 1) / n))


def _bytes(kind: str) -> int:
    kind = {"pred": "i8", "c64": "i64", "c128": "i128"}.get(kind, kind)
    return -(-bits_of(re.sub("^[su](?=\\d)", "i", kind)) // 8)


def _group(line: str) -> int:
    if match := re.search(r"replica_groups=\[\d+,(\d+)\]<=", line):
        return int(match[1])
    if match := re.search(r"replica_groups=\{\{([\d,]*)\}", line):
        return len(match[1].split(","))
    if match := re.search(r"replica_groups=mesh\[([^\]]*)\][^{]*\{('[^}]*)\}", line):
        sizes = {axis: int(size) for axis, size in re.findall(r"'([^']+)'=(\d+)", match[1])}
        axes = re.findall(r"'([^']+)'(?::\(\d+\)(\d+))?", match[2])
        return prod(int(part) if part else sizes[axis] for axis, part in axes)
    return 1
