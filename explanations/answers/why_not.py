"""The answer to why not: the reason that stops an axis on its way, as JSON and as text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ...program.mlir.origins import at
from ..steps import Before, Reason, Site, Stop
from .notebook import text_html
from .text import dim_text, more_text, site_title, stage_text, wrapped

_MOST_STOPS = 4


@dataclass(frozen=True, eq=False, repr=False)
class WhyNot:
    """Why a dimension of a tensor is not sharded on an axis.

    ``here`` are obstacles in the tensor itself. ``stops`` are the ops at which the axis stopped on its way,
    nearest first (``distance`` ops away), ``visited`` the number of dimensions that it could have come
    through.
    """

    site: Site
    axis: str
    here: tuple[Reason, ...]
    stops: tuple[Stop, ...]
    visited: int

    def as_json(self) -> dict[str, Any]:
        """The explanation as JSON has it."""
        return {
            "site": asdict(self.site),
            "axis": self.axis,
            "here": [_reason(reason) for reason in self.here],
            "stops": [
                {**asdict(stop), "reasons": [_reason(reason) for reason in stop.reasons]}
                for stop in self.stops
            ],
            "visited": self.visited,
        }

    def __str__(self) -> str:
        return why_not_text(self)

    def __repr__(self) -> str:
        every = (*self.here, *(reason for stop in self.stops for reason in stop.reasons))
        reasons = ", ".join(dict.fromkeys(reason.reason for reason in every)) or "nothing to come"
        return f'<why not {self.site.value} dim {self.site.dim} "{self.axis}": {reasons}>'

    def _repr_html_(self) -> str:
        return text_html(str(self))


def _reason(reason: Reason) -> dict[str, Any]:
    return {**_words(reason), "before": reason.before and _before(reason.before)}


def _before(before: Before) -> dict[str, Any]:
    names = ("op", "where", "stack")
    entry: dict[str, Any] = {name: getattr(before, name) for name in names}
    entry |= {"stage": asdict(before.stage), "site": asdict(before.site)}
    return entry | {"reasons": [_words(reason) for reason in before.reasons]}


def _words(reason: Reason) -> dict[str, str]:
    names = ("reason", "sentence", "rule", "culprit")
    return {name: getattr(reason, name) for name in names}


def why_not_text(explanation: WhyNot, *, full: bool = False) -> str:
    """The obstacles to an axis: in the tensor itself, then at the ops on the way, nearest first."""
    lines = [site_title(explanation.site, f'is not sharded on "{explanation.axis}"')]
    for reason in explanation.here:
        lines += _reason_lines(reason, "  ")
    stops = explanation.stops if full else explanation.stops[:_MOST_STOPS]
    for stop in stops:
        away = "next to it" if not stop.distance else f"{stop.distance} further on"
        lines.append(
            f'  {dim_text(stop.near)} has "{explanation.axis}", '
            f"{dim_text(stop.far)} does not get it  ({away})"
        )
        factor = f", factor {stop.factor}" if stop.factor else ""
        lines.append(f"      by {stop.op}{at(stop.where, stop.stack)}{factor}")
        for reason in stop.reasons if full else stop.reasons[:2]:
            lines += _reason_lines(reason, "      ")
    if len(stops) < len(explanation.stops):
        lines.append(f"  ... {more_text(len(explanation.stops) - len(stops), 'op')}")
    if not explanation.stops and not explanation.here:
        ways = f"{explanation.visited} dimensions of tensors that it could come through"
        lines.append(f"  the axis is on none of the {ways}: annotate one of them with it")
    return "\n".join(lines)


def short_why_not(explanation: WhyNot) -> str:
    """The first obstacle to an axis, in a sentence."""
    reasons, place = explanation.here, ""
    if not reasons and explanation.stops:
        stop = explanation.stops[0]
        reasons, place = stop.reasons, f"it stops at {stop.op}{at(stop.where, stop.stack)}, "
    if not reasons:
        return "the axis is on no tensor that it could come from"
    reason = reasons[0]
    rule = f" [{reason.rule}]" if reason.rule else ""
    culprit = f"; {reason.culprit}" if reason.culprit else ""
    return f"{place}{reason.reason}: {reason.sentence.rstrip('.')}{rule}{culprit}"


def _reason_lines(reason: Reason, indent: str) -> list[str]:
    rule = f" [{reason.rule}]" if reason.rule else ""
    lines = wrapped(indent, f"{reason.reason}: {reason.sentence}{rule}")
    if reason.culprit:
        lines += wrapped(f"{indent}    ", reason.culprit)
    if reason.before is not None:
        lines += _before_lines(reason.before, f"{indent}    ")
    return lines


def _before_lines(before: Before, indent: str) -> list[str]:
    """The reason why the axis had not come by then."""
    way = f"the axis could not get to {dim_text(before.site)} by {before.op}{at(before.where, before.stack)}"
    lines = wrapped(indent, f"that came in {stage_text(before.stage)}, when {way}")
    for reason in before.reasons[:2]:
        rule = f" [{reason.rule}]" if reason.rule else ""
        lines += wrapped(f"{indent}    ", f"{reason.reason}: {reason.sentence}{rule}")
    return lines
