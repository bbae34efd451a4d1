"""Time against memory as a picture: an SVG file of labelled points, which needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log

from ..markup import joined
from ..program.elements import bytes_text
from ..runs.table import time_text
from .plan import AutoPlan, front

_WIDTH, _HEIGHT = 860, 520
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 190, 46, 56
_COLOURS = ("#3366aa", "#cc5533", "#338855", "#885599", "#aa8822", "#228899", "#993355", "#666666")
_TICKS = 6  # ticks of an axis, about
_FOUND = ("memory at", "mutated", "applied", "found")  # names of plans that are no known strategy
_APART, _BESIDE, _LETTER = 13, 9, 6.5  # pixels between labels, between a point and its label, of a letter
_NAMED = 4  # points in one place that have labels, at most


@dataclass(frozen=True)
class PlotPoint:
    """A plan in the picture: its ``series`` (a colour), its label, and its cost. The ``chosen`` plan is
    marked."""

    series: str
    label: str
    seconds: float
    peak: int
    chosen: bool = False

    @property
    def cost(self) -> tuple[float, int]:
        """The seconds and the bytes."""
        return self.seconds, self.peak


def plan_picture(plan: AutoPlan, others: Sequence[AutoPlan] = ()) -> str:
    """A picture of the costed plans for a program: those from the search, those of ``others`` at further
    prices of memory, and the known strategies. The plan itself is marked."""
    costs = [(each.name, each.mesh, each.seconds, each.peak) for each in plan.tried]
    shown = {(seconds, peak) for _, _, seconds, peak in costs}
    costs += [
        ("found", each.mesh, each.seconds, each.peak)
        for each in others
        if (each.seconds, each.peak) not in shown
    ]
    points = dict[tuple[str, str, float, int], PlotPoint]()
    for name, mesh, seconds, peak in costs:
        searched = name.startswith(_FOUND)
        label = mesh if searched else name if mesh == plan.mesh else f"{name}, {mesh}"
        key = ("found" if searched else "known", label, seconds, peak)
        points.setdefault(key, PlotPoint("found" if searched else "known strategies", label, seconds, peak))
    marked = [
        replace(point, chosen=(point.seconds, point.peak) == (plan.seconds, plan.peak))
        for point in points.values()
    ]
    return picture(marked, f"plans for {plan.mesh} on {plan.topology}")


def picture(points: Sequence[PlotPoint], title: str, *, each_series: bool = False) -> str:
    """An SVG file: the time of a step to the right, the peak memory of a device upwards, and the Pareto
    front. All points are labelled. With ``each_series`` each has its front, and only points on one are
    labelled. All have a tooltip."""
    series = list(dict.fromkeys(point.series for point in points))
    across = _Scale([point.seconds for point in points], _LEFT, _WIDTH - _RIGHT, 10)
    up = _Scale([point.peak for point in points], _HEIGHT - _BOTTOM, _TOP, 1024)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}"',
        f' height="{_HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="14">{joined(title)}</text>',
    ]
    low, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for value in across.ticks:
        x = across.of(value)
        lines.append(f'<path d="M{x:.1f} {_TOP}V{low}" stroke="#ddd"/>')
        lines.append(f'<text x="{x:.1f}" y="{low + 16}" text-anchor="middle">{time_text(value)}</text>')
    for value in up.ticks:
        y = up.of(value)
        lines.append(f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="#ddd"/>')
        label = bytes_text(round(value))
        lines.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    lines.append(f'<text x="{(_LEFT + right) / 2}" y="{low + 42}" text-anchor="middle">time of a step</text>')
    lines.append(f'<text x="16" y="{_TOP - 10}">peak memory of a device</text>')
    labelled = list[PlotPoint]()
    for number, name in enumerate(series):
        colour = _COLOURS[number % len(_COLOURS)]
        own = [point for point in points if point.series == name]
        best = front(own if each_series else points, lambda point: point.cost)
        path = " ".join(f"{across.of(each.seconds):.1f},{up.of(each.peak):.1f}" for each in best)
        stroke = colour if each_series else "#999"
        if each_series or not number:
            lines.append(f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-dasharray="4 3"/>')
        for point in own:
            x, y, size = across.of(point.seconds), up.of(point.peak), 7 if point.chosen else 4
            lines.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}" fill-opacity=".75">'
                f"<title>{joined(_labelled(point))}</title></circle>"
            )
        labelled += best if each_series else own
        if len(series) > 1:
            y = _TOP + 14 * number
            lines.append(f'<text x="{_WIDTH - _RIGHT + 14}" y="{y}" fill="{colour}">{joined(name)}</text>')
    lines += _labels(labelled, across, up)
    return "\n".join([*lines, "</svg>", ""])


def _labelled(point: PlotPoint) -> str:
    return f"{point.label}: {time_text(point.seconds, 4)}, {bytes_text(point.peak)}"


def _labels(points: Sequence[PlotPoint], across: _Scale, up: _Scale) -> Iterable[str]:
    """Labels beside their points, lower where they would cover others. Of many points in one place a few are
    named."""
    places = dict[tuple[float, float], list[PlotPoint]]()
    for point in sorted(points, key=lambda each: (-each.peak, each.seconds, not each.chosen, each.label)):
        place = round(across.of(point.seconds), 1), round(up.of(point.peak), 1)
        places.setdefault(place, []).append(point)
    taken = list[tuple[float, float, float]]()
    for (x, y), here in places.items():
        named = here if len(here) <= _NAMED else here[: _NAMED - 1]
        labels = [(point.label, point.chosen) for point in named]
        if named is not here:
            labels.append((f"and {len(here) - len(named)} others", False))
        for label, chosen in labels:
            width = _LETTER * len(label)
            fits = x + _BESIDE + width <= _WIDTH
            left = x + _BESIDE if fits else x - _BESIDE - width
            low = y + 4
            while any(
                abs(low - at) < _APART and left < last and first < left + width for first, last, at in taken
            ):
                low += _APART
            taken.append((left, left + width, low))
            start = f'x="{left:.1f}"' if fits else f'x="{x - _BESIDE:.1f}" text-anchor="end"'
            weight = ' font-weight="bold"' if chosen else ""
            yield f'<text {start} y="{low:.1f}"{weight}>{joined(label)}</text>'


class _Scale:
    """Numbers as pixels, between round numbers around all of them."""

    def __init__(self, values: Sequence[float], first: float, last: float, base: int) -> None:
        low, high = min(values), max(values)
        step = _round_step((high - low or high or 1) / _TICKS, base)
        bottom, top = floor(low / step), ceil(high / step)
        top = max(top, bottom + 1)
        self.ticks = [number * step for number in range(bottom, top + 1)]
        self._low, self._span = bottom * step, (top - bottom) * step
        self._first, self._last = first, last

    def of(self, value: float) -> float:
        return self._first + (self._last - self._first) * (value - self._low) / self._span


def _round_step(step: float, base: int) -> float:
    """The next of 1, 2, 5, 10, 20 and so on times a power of a base."""
    power = float(base) ** floor(log(step, base))
    return next(
        power * n * tens for tens in (1, 10, 100, 1000) for n in (1, 2, 5) if power * n * tens >= step
    )
