"""What the pictures of a step are drawn from: the timeline, memory, links, and which layer sends what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...cost.cost import Cost
from ...cost.timeline import COMPUTE, TimelineEvent
from ...cost.usage import Usage
from ...program.mlir.origins import numberless

_MOST_LAYERS = 12  # that are named; the smaller ones are one
_SPANS = 240  # of the step, for memory
_COLUMNS = 900  # of the step: shorter pieces of the timeline that follow each other are one
_WHOLE = 100_000  # the length of the step on the page
_NUMBERS = 6  # collectives that a cell of the matrix names
_OTHERS, _NONE = "others", "outside of layers"


def pictures(cost: Cost) -> dict[str, Any]:
    """The timeline, the memory over the step, the links, and the collectives by layer, of a cost."""
    timeline, usage = cost.timeline, cost.usage
    assert timeline is not None and usage is not None, "the cost is asked for with its step"
    events = list(timeline.events)
    return {
        "timeline": _timeline(events, cost.seconds),
        "usage": _usage(usage),
        "links": _links(events, cost.seconds),
        "matrix": _matrix(events),
    }


class _Layers:
    """Numbers for scopes. Of many scopes those that differ only in numbers are one, and so are small ones."""

    def __init__(self, weights: Iterable[tuple[tuple[str, ...], float]]) -> None:
        by_scope: dict[str, float] = {}
        for scope, weight in weights:
            name = "/".join(scope) or _NONE
            by_scope[name] = by_scope.get(name, 0.0) + weight
        many = len(by_scope) > _MOST_LAYERS
        short = {name: numberless(name) if many else name for name in by_scope}
        totals: dict[str, float] = {}
        for name, weight in by_scope.items():
            totals[short[name]] = totals.get(short[name], 0.0) + weight
        kept = set(totals)
        if len(totals) > _MOST_LAYERS:
            kept = set(sorted(totals, key=lambda name: -totals[name])[: _MOST_LAYERS - 1])
        self.names = [name for name in totals if name in kept] + [_OTHERS] * (len(kept) < len(totals))
        number = {name: n for n, name in enumerate(self.names)}
        self._numbers = {name: number[s if s in kept else _OTHERS] for name, s in short.items()}

    def __call__(self, scope: tuple[str, ...]) -> int:
        return self._numbers["/".join(scope) or _NONE]


def _timeline(events: Sequence[TimelineEvent], total: float) -> dict[str, Any]:
    """``pieces`` are ``[track, begin, length, layer, limit, op, ops]``; ``whole`` is the length of the step.
    Ops that follow each other on a track are one piece where they are shorter than a column; it is called
    after the longest."""
    layers = _Layers((event.work.layer, event.seconds) for event in events)
    least = total / _COLUMNS
    tracks = {COMPUTE: 0}
    last: dict[int, list[Any]] = {}
    longest: dict[int, float] = {}
    pieces = list[list[Any]]()
    for work, begin, seconds, times in events:
        track = tracks.setdefault(work.track, len(tracks))
        row: list[Any] = [track, begin, seconds, layers(work.layer), work.limited, work.op, times]
        before = last.get(track)
        if before is not None and begin + seconds - before[1] < least:
            before[2], before[6] = begin + seconds - before[1], before[6] + times
            if seconds > longest[track]:
                longest[track], before[3:6] = seconds, row[3:6]
            continue
        last[track], longest[track] = row, seconds
        pieces.append(row)
    for row in pieces:
        row[1:3] = (round(_WHOLE * row[1] / (total or 1.0)), round(_WHOLE * row[2] / (total or 1.0)))
    return {"tracks": list(tracks), "layers": layers.names, "pieces": pieces, "whole": _WHOLE}


def _usage(usage: Usage) -> dict[str, Any]:
    """``moments`` are ``[time, bytes of each layer]``."""
    layers = _Layers((life.layer, float(life.bytes)) for life in usage.lives)
    moments = usage.moments(_SPANS, layers)
    return {
        "arguments": usage.arguments,
        "results": usage.results,
        "times": usage.times,
        "layers": layers.names,
        "moments": [[time, [live.get(n, 0) for n in range(len(layers.names))]] for time, live in moments],
    }


def _links(events: Sequence[TimelineEvent], total: float) -> list[dict[str, Any]]:
    """The links of each set of axes: the bytes that a device sends, how often, the seconds for which they
    are busy, and the part of the step. The busiest come first."""
    by_axes: dict[tuple[str, ...], dict[str, Any]] = {}
    for event in events:
        if not event.work.axes:
            continue
        axes = tuple(sorted(event.work.axes))
        row = by_axes.setdefault(axes, {"axes": list(axes), "bytes": 0.0, "seconds": 0.0, "times": 0})
        row["bytes"] += event.work.bytes * event.times
        row["seconds"] += event.seconds
        row["times"] += event.times
    rows = sorted(by_axes.values(), key=lambda row: -row["seconds"])
    return [{**row, "busy": row["seconds"] / (total or 1.0)} for row in rows]


def _matrix(events: Sequence[TimelineEvent]) -> dict[str, Any]:
    """``cells`` are ``[layer, kind, bytes, times, seconds, numbers]``; the numbers are those of the
    collectives that send most."""
    sent = [event for event in events if event.work.number is not None]
    layers = _Layers((event.work.layer, event.work.bytes * event.times) for event in sent)
    kinds: dict[str, int] = {}
    cells: dict[tuple[int, int], list[Any]] = {}
    numbers: dict[tuple[int, int], dict[int, float]] = {}
    for work, _, seconds, times in sent:
        key = layers(work.layer), kinds.setdefault(work.op, len(kinds))
        cell = cells.setdefault(key, [*key, 0.0, 0, 0.0])
        for i, amount in enumerate((work.bytes * times, times, seconds), start=2):
            cell[i] += amount
        own = numbers.setdefault(key, {})
        if work.number is not None:
            own[work.number] = own.get(work.number, 0.0) + work.bytes * times
    rows = [[*cell, _largest(numbers[key])] for key, cell in sorted(cells.items())]
    return {"layers": layers.names, "kinds": list(kinds), "cells": rows}


def _largest(numbers: dict[int, float]) -> list[int]:
    return sorted(numbers, key=lambda number: (-numbers[number], number))[:_NUMBERS]
