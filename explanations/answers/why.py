"""The answer to why: a chain of steps back to annotations, as JSON, as text, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...markup import Html, element, joined
from ...program.ids import Place
from ...program.mlir.origins import at
from ...runs.records.record import Annotation
from ..steps import Site, Tree, WhyStep
from .text import annotation_text, dim_text, more_text, proof_lines, site_title, step_lines

_MOST_STEPS = 6
_MOST_OTHERS = 4


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a dimension of a tensor is sharded on an axis.

    ``steps`` lead back from it to ``origin``, the annotation that the axis comes from. ``needs`` are all
    annotations that the steps rest on, ``origin`` first: with these alone the axis is derived again.
    """

    site: Site
    axis: str
    place: Place
    atoms: tuple[int, ...]
    steps: Sequence[WhyStep]
    origin: Annotation
    needs: tuple[Annotation, ...]

    def as_json(self, *, proofs: bool = False) -> dict[str, Any]:
        """The explanation as JSON has it, with the proof of every step on demand."""
        return {
            "site": asdict(self.site),
            "axis": self.axis,
            "steps": [_step(step, proofs) for step in self.steps],
            "origin": _annotation(self.origin),
            "needs": [_annotation(annotation) for annotation in self.needs],
        }

    def __str__(self) -> str:
        return why_text(self)

    def __repr__(self) -> str:
        ops = dict.fromkeys(step.op for step in self.steps)
        by = f"by {', '.join(ops)} " if ops else ""
        return f'<why {self.site.value} dim {self.site.dim} "{self.axis}": {by}from {self.origin.value}>'

    def _repr_html_(self) -> str:
        return why_html(self)


def _step(step: WhyStep, proofs: bool) -> dict[str, Any]:
    names = (
        "kind",
        "axis",
        "op",
        "where",
        "stack",
        "from_slot",
        "to_slot",
        "factor",
        "change",
        "sentence",
        "rule",
        "candidate",
    )
    entry: dict[str, Any] = {name: getattr(step, name) for name in names}
    entry |= {name: asdict(getattr(step, name)) for name in ("site", "source", "stage")}
    entry["rests_on"] = list(step.rests_on)
    entry["lost"] = [asdict(loss) for loss in step.lost]
    return entry | ({"proof": Tree(step.proof, step.says).rows} if proofs else {})


def _annotation(annotation: Annotation) -> dict[str, Any]:
    place = {"where": annotation.where, "stack": annotation.stack}
    return {"value": annotation.value, **place, "sharding": annotation.text, "by": annotation.by}


def why_text(explanation: Explanation, *, depth: int = 0, full: bool = False) -> str:
    """The chain of an explanation, the derived axis first.

    ``depth`` is how far proofs are shown below each step; ``full``: all steps and whole proofs.
    """
    steps, origin = explanation.steps, explanation.origin
    lines = [why_title(explanation)]
    left_out = 0 if full else max(0, len(steps) - _MOST_STEPS)
    head = (len(steps) - left_out + 1) // 2
    for i in (*range(head), *range(head + left_out, len(steps))):
        if left_out and i == head + left_out:
            lines.append(f"  ... {more_text(left_out, 'step')}")
        lines += step_lines(steps[i], full=full)
        if depth or full:
            lines += [f"        {line}" for line in proof_lines(steps[i], None if full else depth)]
    lines.append(annotation_text(origin, "  "))
    if origin.by == "completion" and not steps:
        lines.append("    (a saved run has no visits of completion: ask about the module)")
    others = [annotation for annotation in explanation.needs if annotation.cell != origin.cell]
    if others:
        shown = others if full else others[:_MOST_OTHERS]
        lines.append("  which rests on the annotations of these too:")
        lines += [annotation_text(annotation, "    ", called=True) for annotation in shown]
        if len(shown) < len(others):
            lines.append(f"    ... {more_text(len(others) - len(shown), 'annotation')}")
    return "\n".join(lines)


def why_title(explanation: Explanation) -> str:
    """The subject of an explanation."""
    return site_title(explanation.site, f'is sharded on "{explanation.axis}"')


def short_why(explanation: Explanation) -> str:
    """The origin of an axis, in a sentence."""
    steps, origin = explanation.steps, explanation.origin
    source = f'"{explanation.axis}" comes from {origin}'
    if not steps:
        return source
    last = f"by {steps[0].op}{at(steps[0].where, steps[0].stack)} from {dim_text(steps[0].source)}"
    turn = "visit" if steps[0].kind == "visit" else "turn"
    turns = f", after {more_text(len(steps) - 1, turn, '')}" if len(steps) > 1 else ""
    return f"{source}, {last}{turns}"


def why_html(explanation: Explanation) -> Html:
    """The chain of an explanation; each step opens to its proof."""
    lines = [element("pre", why_title(explanation)), *map(_step_html, explanation.steps)]
    lines.append(element("pre", annotation_text(explanation.origin)))
    others = [annotation_text(annotation, called=True) for annotation in explanation.needs[1:]]
    if others:
        rows = element("ul", *(element("li", element("code", other)) for other in others))
        lines.append(joined("which rests on the annotations of these too:", rows))
    return element("div", joined(*lines, by="\n"))


def _step_html(step: WhyStep) -> Html:
    first, *rest = step_lines(step)
    proof = element("details", element("summary", "proof"), element("pre", "\n".join(proof_lines(step))))
    details = element("pre", "\n".join(line.strip() for line in rest))
    return element("details", element("summary", element("code", first.strip())), details, proof)
