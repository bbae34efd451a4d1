"""What a compiled program moves, counted in its optimised HLO."""

from __future__ import annotations

import re
from math import prod

from shardlog.program.elements import bits_of

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_OP = re.compile(r"^ +(?:ROOT )?%?[\w.\-]+ = (.*?) ([a-z][\w\-]*)\(")
_TYPE = re.compile(r"\b([a-z]\w*)\[([\d,]*)\]")
_CALLED = re.compile(r"(?:calls|body|condition|to_apply)=%?([\w.\-]+)")
_TURNS = re.compile(r'known_trip_count\\?":\{\\?"n\\?":\\?"(\d+)')
_KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")


def hlo_bytes(text: str) -> float:
    """The bytes that a device sends by the ring model; loops count their turns, branches all of them."""
    lines, entry, name = dict[str, list[str]](), "", ""
    for line in text.splitlines():
        if found := _COMPUTATION.match(line):
            name = found[2]
            lines[name] = []
            entry = name if found[1] else entry
        elif name:
            lines[name].append(line)

    def total(computation: str) -> float:
        return sum(map(_sent, lines[computation])) + sum(
            turns * total(called)
            for line in lines[computation]
            for called, turns in _calls(line)
            if called in lines
        )

    return total(entry)


def _calls(line: str) -> list[tuple[str, int]]:
    turns = int(found[1]) if (found := _TURNS.search(line)) else 1
    branches = re.search(r"branch_computations=\{(.*?)\}", line)
    names = re.findall(r"%?([\w.\-]+)", branches[1]) if branches else []
    names += re.findall(r"(?:true|false)_computation=%?([\w.\-]+)", line)
    return [(name, turns) for name in (*_CALLED.findall(line), *names)]


def _sent(line: str) -> float:
    found = _OP.match(line)
    if found is None or found[2] not in _KINDS:
        return 0.0
    sizes = [
        prod(map(int, filter(None, dims.split(",")))) * _bytes(kind) for kind, dims in _TYPE.findall(found[1])
    ]
    size, n = sum(sizes), _group(line)
    shares = {"all-reduce": 2 * (n - 1) / n, "reduce-scatter": n - 1, "collective-permute": 1}
    return size * shares.get(found[2], (n - 1) / n)


def _bytes(kind: str) -> int:
    kind = {"pred": "i8", "c64": "i64", "c128": "i128"}.get(kind, kind)
    return -(-bits_of(re.sub("^[su](?=\\d)", "i", kind)) // 8)


def _group(line: str) -> int:
    if found := re.search(r"replica_groups=\[\d+,(\d+)\]<=", line):
        return int(found[1])
    if found := re.search(r"replica_groups=\{\{([\d,]*)\}", line):
        return len(found[1].split(","))
    if found := re.search(r"replica_groups=mesh\[([^\]]*)\][^{]*\{('[^}]*)\}", line):
        sizes = {axis: int(size) for axis, size in re.findall(r"'([^']+)'=(\d+)", found[1])}
        axes = re.findall(r"'([^']+)'(?::\(\d+\)(\d+))?", found[2])
        return prod(int(part) if part else sizes[axis] for axis, part in axes)
    return 1
