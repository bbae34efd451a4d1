"""Explanations as text that fits a screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import TextWrapper
from typing import TYPE_CHECKING

from ...engine.provenance.proof import Proof
from ...program.mlir.origins import at
from ...runs.choice import ProgramChoice
from ...runs.records.record import Annotation, Stage
from ..explanation import Before, Explanation, Reason, Site, Step, WhyNot, rule_place, tuple_text
from .alike import groups, left_out, others

if TYPE_CHECKING:
    from ..questions.conflicts import Conflict

_WIDTH = 100
_MOST_STEPS = 6
_MOST_OTHERS = 4
_MOST_TEXTS = 8


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
            lines.append(f"  ... {_more(left_out, 'step')}")
        lines += step_lines(steps[i], full=full)
        if depth or full:
            lines += [f"        {line}" for line in proof_lines(steps[i], None if full else depth)]
    lines.append(annotation_text(origin, "  "))
    others = [annotation for annotation in explanation.needs if annotation.cell != origin.cell]
    if others:
        shown = others if full else others[:_MOST_OTHERS]
        lines.append("  which rests on the annotations of these too:")
        lines += [annotation_text(annotation, "    ", said=True) for annotation in shown]
        if len(shown) < len(others):
            lines.append(f"    ... {_more(len(others) - len(shown), 'annotation')}")
    return "\n".join(lines)


def why_title(explanation: Explanation) -> str:
    """The subject of an explanation."""
    return _title(explanation.site, f'is sharded on "{explanation.axis}"')


def why_not_text(explanation: WhyNot, *, full: bool = False) -> str:
    """The obstacles to an axis: in the tensor itself, then at the ops on the way, nearest first."""
    lines = [_title(explanation.site, f'is not sharded on "{explanation.axis}"')]
    for reason in explanation.here:
        lines += _reason(reason, "  ")
    stops = explanation.stops if full else explanation.stops[:_MOST_OTHERS]
    for stop in stops:
        away = "next to it" if not stop.distance else f"{stop.distance} further on"
        lines.append(
            f'  {_dim(stop.near)} has "{explanation.axis}", {_dim(stop.far)} does not get it  ({away})'
        )
        factor = f", factor {stop.factor}" if stop.factor else ""
        lines.append(f"      by {stop.op}{at(stop.where, stop.stack)}{factor}")
        for reason in stop.reasons if full else stop.reasons[:2]:
            lines += _reason(reason, "      ")
    if len(stops) < len(explanation.stops):
        lines.append(f"  ... {_more(len(explanation.stops) - len(stops), 'op')}")
    if not explanation.stops and not explanation.here:
        ways = f"{explanation.visited} dimensions of tensors that it could come through"
        lines.append(f"  the axis is on none of the {ways}: annotate one of them with it")
    return "\n".join(lines)


def short_why(explanation: Explanation) -> str:
    """The origin of an axis, in a sentence."""
    steps, origin = explanation.steps, explanation.origin
    said = f'"{explanation.axis}" comes from {origin}'
    if not steps:
        return said
    last = f"by {steps[0].op}{at(steps[0].where, steps[0].stack)} from {_dim(steps[0].source)}"
    turns = f", after {_more(len(steps) - 1, 'turn', '')}" if len(steps) > 1 else ""
    return f"{said}, {last}{turns}"


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


def conflicts_text(conflicts: Sequence[Conflict], program: ProgramChoice, *, full: bool = False) -> str:
    """The tensors that must move in a program, most bytes first."""
    lines = [program.line, must_move(conflicts)]
    found = [[c] for c in conflicts] if full else groups(conflicts, lambda c: "\n".join(_conflict(c, 1)))
    found.sort(key=lambda same: -same[0].bytes * len(same))
    shown = found if full else found[:_MOST_STEPS]
    for first, *alike in shown:
        lines += _conflict(first, 1 + len(alike))
        if alike:
            lines += wrapped("      ", f"so do {others([conflict.tensor for conflict in alike])}")
    if len(shown) < len(found):
        lines.append(f"  {left_out(sum(map(len, found[len(shown) :])), 'tensor')}")
    return "\n".join(lines)


def must_move(conflicts: Sequence[Conflict]) -> str:
    """How many tensors must move, and their bytes."""
    total = sum(conflict.bytes for conflict in conflicts)
    tensors = f"{len(conflicts)} tensor{'' if len(conflicts) == 1 else 's'}"
    return f"{tensors} must move, {total:,} bytes to each device"


def _conflict(conflict: Conflict, times: int) -> list[str]:
    size = f"{times} times {conflict.bytes:,} bytes" if times > 1 else f"{conflict.bytes:,} bytes"
    op = f"{conflict.op}{at(conflict.where, conflict.stack)}, {conflict.slot}"
    if conflict.executions is None or conflict.executions > 1:
        turns = "each turn" if conflict.executions is None else f"in {conflict.executions:,} turns"
        size += f" {turns}"
    lines = [
        f"  {size}, {conflict.collective}: {conflict.tensor} : {conflict.type}",
        f"      {f'{moves_text(conflict)} for {op}'.strip()}",
    ]
    return lines + (wrapped("      ", given_text(conflict.given)) if conflict.given else [])


def moves_text(conflict: Conflict) -> str:
    """How the tensor lies, and how it is needed: ``[{a}, {}] -> [{}, {}]``; of a scalar over which axes it is
    partial, if it is."""
    partial = f" partial over {conflict.partial}" if conflict.partial else ""
    if not (conflict.has or conflict.needs):
        return partial.strip()
    if conflict.has == conflict.needs and not partial:
        return dims_text(conflict.has)
    return f"{dims_text(conflict.has)}{partial} -> {dims_text(conflict.needs)}"


def folded(sites: Sequence[Site], texts: Sequence[str], *, full: bool = False) -> str:
    """Explanations as text, one entry for several tensors of which the same is said.

    ``sites`` are their subjects, ``texts`` their texts. A line of a large program may have thousands: a
    screen or two of them are shown.
    """
    if full:
        return "\n\n".join(texts)
    found = groups(list(zip(sites, texts, strict=True)), lambda pair: pair[1])
    shown = []
    for (_, text), *alike in found[:_MOST_TEXTS]:
        names = others([_dim(site) for site, _ in alike])
        shown.append("\n".join([text, *(wrapped("  ", f"so it is of {names}") if alike else [])]))
    if len(found) > len(shown):
        shown.append(left_out(sum(map(len, found[len(shown) :])), "explanation"))
    return "\n\n".join(shown)


def proof_lines(step: Step, depth: int | None = None) -> Iterator[str]:
    """The proof of a step as indented lines, premises below what follows from them, each once.

    ``depth`` is how many levels are shown; None: all.
    """
    seen: set[int] = set()

    def lines(proof: Proof, level: int) -> Iterator[str]:
        again = id(proof) in seen and proof.source is not None
        seen.add(id(proof))
        note = "above" if again else rule_place(proof) or "given"
        sentence = "" if again else step.says(proof)
        yield f"{'  ' * level}{tuple_text(proof)}  [{note}]{'  ' if sentence else ''}{sentence}"
        if not again and (depth is None or level < depth):
            for premise in (*proof.premises, *proof.counted):
                yield from lines(premise, level + 1)

    yield from lines(step.proof, 0)


def dims_text(axes: Sequence[str]) -> str:
    """The axes of each dimension: ``[{data}, {}]``."""
    return f"[{', '.join(f'{{{names}}}' for names in axes)}]"


def _title(site: Site, what: str) -> str:
    return f"{site.value} : {site.type}{at(site.where, site.stack)}\ndim {site.dim} {what}"


def step_lines(step: Step, *, full: bool = False) -> list[str]:
    """A step of a chain; ``full``: with everything else that was in the running, and lost."""
    stage = stage_text(step.stage)
    if step.kind == "priority":
        lines = [f'  {_dim(step.site)} gets "{step.axis}": its priority has come', f"      {stage}"]
    else:
        by = f"by {step.op}{at(step.where, step.stack)}"
        lines = [
            f'  {_dim(step.site)} gets "{step.axis}" from {_dim(step.source)} {by}',
            f"      {step.from_slot} -> {step.to_slot}, factor {step.factor}; {stage}",
        ]
    lines += wrapped("      ", f"{step.sentence} [{step.rule}]")
    if step.rests_on:
        lines += wrapped("      ", f"rests on {', '.join(step.rests_on)}")
    return lines + (_all_lost(step) if full else _lost(step))


def _lost(step: Step) -> list[str]:
    """The other axes in the running, as one line if any."""
    if not step.lost:
        return []
    first, others = step.lost[0], len(step.lost) - 1
    more = f", and {others} more" if others else ""
    return [f'      not in the same turn: "{first.axis}" for {_dim(first.site)} ({first.reason}){more}']


def _all_lost(step: Step) -> list[str]:
    lines = ["      not in the same turn:"] if step.lost else []
    for loss in step.lost:
        lines.append(
            f'        "{loss.axis}" of {_dim(loss.source)} for {_dim(loss.site)}, factor {loss.factor}'
        )
        lines += wrapped("          ", f"{loss.reason}: {loss.sentence} [{loss.rule}]")
    return lines


def _reason(reason: Reason, indent: str) -> list[str]:
    rule = f" [{reason.rule}]" if reason.rule else ""
    lines = wrapped(indent, f"{reason.reason}: {reason.sentence}{rule}")
    if reason.culprit:
        lines += wrapped(f"{indent}    ", reason.culprit)
    if reason.before is not None:
        lines += _before(reason.before, f"{indent}    ")
    return lines


def _before(before: Before, indent: str) -> list[str]:
    """The reason why the axis had not come by then."""
    way = f"the axis could not get to {_dim(before.site)} by {before.op}{at(before.where, before.stack)}"
    lines = wrapped(indent, f"that came in {stage_text(before.stage)}, when {way}")
    for reason in before.reasons[:2]:
        rule = f" [{reason.rule}]" if reason.rule else ""
        lines += wrapped(f"{indent}    ", f"{reason.reason}: {reason.sentence}{rule}")
    return lines


def wrapped(indent: str, text: str) -> list[str]:
    """A sentence as lines that fit a screen; paths and names stay whole."""
    wrapper = TextWrapper(_WIDTH, initial_indent=indent, subsequent_indent=indent)
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return wrapper.wrap(text)


def annotation_text(annotation: Annotation, indent: str = "", *, said: bool = False) -> str:
    """An annotation as a line; ``said``: that it is one has been said."""
    if annotation.spec:
        return f"{indent}{annotation}: {annotation.value} {annotation.text}"
    word = "" if said else "annotated "
    return f"{indent}{word}{annotation.value} {annotation.text}{at(annotation.where, annotation.stack)}"


def given_text(annotations: Sequence[Annotation]) -> str:
    """The annotations that meet: those of the user, then the specs of ``shard_map``s."""
    own = [f"{a.value}{at(a.where, a.stack)}" for a in annotations if not a.spec]
    specs = list(dict.fromkeys(str(a) for a in annotations if a.spec))
    named = [f"the annotation{'s' * (len(own) > 1)} of {' and '.join(own)}"] if own else []
    return f"by {' and '.join([*named, *specs])}"


def stage_text(stage: Stage) -> str:
    """A stage in words."""
    level = "" if stage.level is None else f"op priority {stage.level}, "
    return f"user priority {stage.priority}, {level}{stage.strategy}"


def _dim(site: Site) -> str:
    return f"{site.value} dim {site.dim}"


def _more(n: int, what: str, hint: str = " (--full shows all)") -> str:
    return f"{n} more {what}{'' if n == 1 else 's'}{hint}"
