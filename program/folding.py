"""The program as nested groups, so that a large one can be drawn: scopes, and repetitions in them.

A scope is JAX's record of where an op comes from: its named scopes, or else the functions that were being
called. Consecutive ops of one scope are a group. Inside a group, a repeated sequence of equal ops or groups,
such as the layers of a model, is one group again, with a member for each repetition.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from .columns import Whole
from .mlir.origins import Origin, split

SCOPE, REPEAT, MEMBER, PART = range(4)

_DRAWN = 90  # members that are drawn at a time; more are split into parts
LEAST = 3  # ops that make a scope worth drawing as a group
_BETWEEN = 6  # members between repetitions that are worth a group
_SAVED = 8  # ops that a fold must save
_PERIODS = 64  # distances that are tried for a repetition, the most frequent first
_SHARE = 0.8  # of ops that are in a scope, for a repetition to be called like it
_BACKWARD = "backward"
_SUFFIX = f", {_BACKWARD}"
_TRACED = re.compile(r"p?jit\((\w+)\)")
_WRAPPED = re.compile(r"\w+\((.*)\)")


@dataclass(frozen=True)
class Group:
    """Ops ``first`` to ``end`` (exclusive) of the program; ``members`` are groups in it, in order."""

    label: str
    kind: int
    first: int
    end: int
    members: tuple[Group, ...]

    def as_json(self) -> list[Any]:
        """The fields as a list."""
        return [self.label, self.kind, self.first, self.end, [m.as_json() for m in self.members]]


def scope(origin: Origin) -> tuple[str, ...]:
    """The scope that an op comes from, outermost first.

    ``jit(step)/transpose(jvp(layer))/mul(callsite(norm(model.py:3:8) at loss(model.py:9:2)))`` is in
    ``("backward", "layer")``; without the scope ``layer`` it would be in ``("backward", "loss", "norm")``.
    """
    # Lines of a text are in none; they are an op's each, and would drive out the others.
    named = origin.names or any(frame.function for frame in origin.frames)
    return _named_scope(origin) if named else ()


@lru_cache(maxsize=1 << 16)
def _named_scope(origin: Origin) -> tuple[str, ...]:
    names, backward = [], False
    stack = [part for name in origin.names for part in split(name)][:-1]
    for part in stack:
        name = part
        while match := _WRAPPED.fullmatch(name):
            backward |= name.startswith("transpose(")
            name = "" if name.startswith(("jit(", "pjit(")) else match[1]
        if name and "->" not in name:
            names.append(name)
    if not names:
        frames = [_called(f.function) for f in reversed(origin.frames) if f.function]
        traced = _TRACED.match(stack[0]) if stack else None
        if traced and traced[1] in frames:
            frames = frames[frames.index(traced[1]) :]  # without the callers of JAX
        names = list(dict.fromkeys(frame for frame in frames if not frame.startswith("<")))
    return (_BACKWARD, *names) if backward else tuple(names)


def _called(function: str) -> str:
    """A function without what it is defined in; the class of an object that is called."""
    outer, _, name = function.rpartition(".")
    return outer.rpartition(".")[2] or name if name == "__call__" else name


def fold(scopes: Sequence[tuple[str, ...]], tokens: Sequence[int], least: int = LEAST) -> tuple[Group, ...]:
    """The groups of a program. ``scopes`` and ``tokens`` are by op; ops with equal tokens look alike. Scopes
    of at least so many ops are groups."""
    return _Folding(scopes, tokens, least).groups()


@dataclass(frozen=True)
class _Node:
    """A member to be folded: an op, or a group. Nodes with equal tokens look alike."""

    token: int
    first: int
    end: int
    group: Group | None = None

    @property
    def size(self) -> int:
        """How many ops it has."""
        return self.end - self.first


def stands_for(groups: Sequence[Group], count: int) -> list[int]:
    """For each of ``count`` ops its representative: in a repetition, the op of the first member."""
    representatives = list(range(count))

    def read(groups: Iterable[Group]) -> None:
        for group in groups:
            if group.kind != REPEAT:
                read(group.members)
                continue
            first, *others = group.members
            read(first.members)
            for other in others:
                if other.end - other.first == first.end - first.first:
                    representatives[other.first : other.end] = representatives[first.first : first.end]

    read(groups)
    return representatives


class _Folding:
    def __init__(self, scopes: Sequence[tuple[str, ...]], tokens: Sequence[int], least: int) -> None:
        self.scopes, self.tokens, self.least = scopes, tokens, least
        self.numbers: dict[tuple[int, ...], int] = {}  # of sequences of tokens; negative: ops have the others
        self.repeated: dict[tuple[int, ...], tuple[tuple[int, int, int], ...]] = {}  # by sequences of tokens

    def groups(self) -> tuple[Group, ...]:
        return self.fold(self.nodes(0, len(self.tokens), 0), "")

    # ---- Scopes -----------------------------------------------------------------------------------------

    def nodes(self, first: int, end: int, depth: int) -> list[_Node]:
        """The members of a scope: its ops, and the scopes in it."""
        inner: list[_Node] = []
        at = first
        for name, ops in groupby(range(first, end), lambda i: self.scopes[i][depth : depth + 1]):
            count = sum(1 for _ in ops)
            if name and count == end - first:
                return self.nodes(first, end, depth + 1)
            if name and count >= self.least:
                label = _label(_common([self.scopes[i] for i in range(at, at + count)]))
                members = self.nodes(at, at + count, depth + 1)
                token = self.number(members)
                group = Group(label, SCOPE, at, at + count, self.fold(members, label))
                inner.append(_Node(token, at, at + count, group))
            else:
                inner += [_Node(self.tokens[i], i, i + 1) for i in range(at, at + count)]
            at += count
        return inner

    def number(self, nodes: Iterable[_Node]) -> int:
        key = tuple(node.token for node in nodes)
        return self.numbers.setdefault(key, -1 - len(self.numbers))

    # ---- Repetitions ------------------------------------------------------------------------------------

    def fold(self, nodes: Sequence[_Node], name: str) -> tuple[Group, ...]:
        """The groups among nodes after folding repetitions; in parts if there are too many."""
        folded: list[_Node] = []
        at = 0
        for start, period, count in self.repetitions(nodes):
            folded += nodes[at:start]
            at = start + period * count
            times = [nodes[i : i + period] for i in range(start, at, period)]
            folded.append(_Node(0, nodes[start].first, nodes[at - 1].end, self.repeat(times, name)))
        folded += nodes[at:]
        if any(node.group is not None and node.group.kind == REPEAT for node in folded):
            folded = self.gathered(folded, name)
        if len(folded) > _DRAWN:
            size = -(-len(folded) // -(-len(folded) // _DRAWN))
            return tuple(self.part(folded[i : i + size]) for i in range(0, len(folded), size))
        return _groups(folded)

    def gathered(self, nodes: Sequence[_Node], name: str) -> list[_Node]:
        """Nodes; those between repetitions are put into groups."""
        folded: list[_Node] = []
        for repeats, run in groupby(nodes, lambda node: node.group is not None and node.group.kind == REPEAT):
            some = list(run)
            first, end = some[0].first, some[-1].end
            if repeats or len(some) < _BETWEEN:
                folded += some
            else:
                inside = Group(self.label(first, end, name), SCOPE, first, end, self.fold(some, name))
                folded.append(_Node(0, first, end, inside))
        return folded

    def repeat(self, times: Sequence[Sequence[_Node]], name: str) -> Group:
        label = self.label(times[0][0].first, times[0][-1].end, name)
        alone = [nodes[0].group for nodes in times if len(nodes) == 1 and nodes[0].group]
        labels = [group.label for group in alone]
        if len(set(labels)) > 1:  # layer_0, layer_1, ...
            names = [label.removesuffix(_SUFFIX) for label in labels]
            common = _common(names).rstrip("_ .[0123456789")
            passes = {label[len(name) :] for label, name in zip(labels, names, strict=True)}
            label = common + "".join(passes) if common and len(passes) == 1 else common or label
        else:
            name = label.removesuffix(_SUFFIX)
            labels = [f"{name} {i + 1}{label[len(name) :]}" if label else "" for i in range(len(times))]
        inside = [group.members for group in alone] or [self.fold(nodes, name) for nodes in times]
        members = tuple(
            Group(own, MEMBER, nodes[0].first, nodes[-1].end, groups)
            for own, nodes, groups in zip(labels, times, inside, strict=True)
        )
        return Group(label, REPEAT, times[0][0].first, times[-1][-1].end, members)

    def label(self, first: int, end: int, name: str) -> str:
        """The innermost scope that most ops are in; ``name`` where there is none."""
        path: tuple[str, ...] = ()
        inside = [self.scopes[i] for i in range(first, end)]
        while True:
            deeper = Counter(s[: len(path) + 1] for s in inside if s[: len(path)] == path and s != path)
            following, count = deeper.most_common(1)[0] if deeper else ((), 0)
            if count < _SHARE * (end - first):
                break
            path = following
        return _label(path) if path else name

    def part(self, nodes: Sequence[_Node]) -> Group:
        return Group("", PART, nodes[0].first, nodes[-1].end, _groups(nodes))

    def repetitions(self, nodes: Sequence[_Node]) -> tuple[tuple[int, int, int], ...]:
        """(start, period, count) of the sequences that repeat in a row, from left to right."""
        tokens = tuple(node.token for node in nodes)
        if tokens not in self.repeated:
            sizes = np.asarray([node.size for node in nodes])
            repetitions, waiting = [], [(0, len(tokens))]
            while waiting:
                start, end = waiting.pop()
                best = _best(np.asarray(tokens[start:end]), sizes[start:end])
                if best is not None:
                    at, period, count = best
                    repetitions.append((start + at, period, count))
                    waiting += [(start, start + at), (start + at + period * count, end)]
            self.repeated[tokens] = tuple(sorted(repetitions))
        return self.repeated[tokens]


def _label(path: tuple[str, ...]) -> str:
    return f"{path[-1]}{_SUFFIX}" if path[0] == _BACKWARD and path[1:] else path[-1]


def _best(tokens: Whole, sizes: Whole) -> tuple[int, int, int] | None:
    """The repetition that saves most ops: (start, period, count)."""
    ops = np.concatenate([[0], sizes.cumsum()])  # before each
    if ops[-1] <= _SAVED:
        return None
    order = np.argsort(tokens, kind="stable")
    same = tokens[order[1:]] == tokens[order[:-1]]
    gaps = (order[1:] - order[:-1])[same]
    best: tuple[int, int, int] | None = None
    most = _SAVED - 1
    for period, _ in sorted(Counter(gaps.tolist()).most_common(_PERIODS)):
        equal = np.concatenate([[False], tokens[:-period] == tokens[period:], [False]])
        edges = np.flatnonzero(equal[1:] != equal[:-1])
        starts, times = edges[::2], (edges[1::2] - edges[::2]) // period
        saved = ops[starts + period * (times + 1)] - ops[starts + period]
        if not len(saved):
            continue
        at = int(saved.argmax())
        if saved[at] > most:
            most = int(saved[at])
            best = (int(starts[at]), period, int(times[at]) + 1)
    return best


def _groups(nodes: Iterable[_Node]) -> tuple[Group, ...]:
    return tuple(node.group for node in nodes if node.group is not None)


def _common(sequences: Sequence[Any]) -> Any:
    """The longest common beginning of sequences."""
    first, last = min(sequences), max(sequences)
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:length]
