"""Explanations as text that fits a screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import TextWrapper

from ...engine.provenance.proof import Proof
from ...program.mlir.origins import at
from ...runs.records.record import Annotation, Stage
from ..steps import OPTION, PARTIAL, Site, WhyStep, rule_place, tuple_text
from .alike import groups, left_out, others

_WIDTH = 100
_MOST_TEXTS = 8


def folded(sites: Sequence[Site], texts: Sequence[str], *, full: bool = False) -> str:
    """Explanations as text, one entry for several tensors with equal explanations.

    ``sites`` are their subjects, ``texts`` their texts. A line of a large program may have thousands: a
    screen or two of them are shown.
    """
    if full:
        return "\n\n".join(texts)
    grouped = groups(list(zip(sites, texts, strict=True)), lambda pair: pair[1])
    shown = []
    for (_, text), *alike in grouped[:_MOST_TEXTS]:
        names = others([dim_text(site) for site, _ in alike])
        shown.append("\n".join([text, *(wrapped("  ", f"so it is of {names}") if alike else [])]))
    if len(grouped) > len(shown):
        shown.append(left_out(sum(map(len, grouped[len(shown) :])), "explanation"))
    return "\n\n".join(shown)


def proof_lines(step: WhyStep, depth: int | None = None) -> Iterator[str]:
    """The proof of a step as indented lines: premises below their conclusions, each once.

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


def site_title(site: Site, question: str) -> str:
    """The two lines above an explanation: the value with its type and place, and the dimension."""
    return f"{site.value} : {site.type}{at(site.where, site.stack)}\ndim {site.dim} {question}"


def step_lines(step: WhyStep, *, full: bool = False) -> list[str]:
    """A step of a chain; ``full``: with everything else that was in the running, and lost."""
    stage = stage_text(step.stage)
    if step.kind == "priority":
        lines = [f'  {dim_text(step.site)} gets "{step.axis}": its priority has come', f"      {stage}"]
    elif step.kind == "visit":
        source = "as its users want it" if step.source == step.site else f"from {dim_text(step.source)}"
        source = f"from the {OPTION}" if step.from_slot == OPTION else source
        by = f"by {step.op}{at(step.where, step.stack)}"
        lines = [
            f'  {dim_text(step.site)} gets "{step.axis}" {source} {by}',
            f"      {step.from_slot} -> {step.to_slot}, loop {step.factor}; {step.stage.strategy}",
        ]
    else:
        by = f"by {step.op}{at(step.where, step.stack)}"
        lines = [
            f'  {dim_text(step.site)} gets "{step.axis}" from {dim_text(step.source)} {by}',
            f"      {step.from_slot} -> {step.to_slot}, factor {step.factor}; {stage}",
        ]
    lines += wrapped("      ", f"{step.sentence} [{step.rule}]")
    lines += wrapped("      ", step.candidate)
    if step.rests_on:
        lines += wrapped("      ", f"rests on {', '.join(step.rests_on)}")
    return lines + (_all_lost(step) if full else _lost(step))


def _lost(step: WhyStep) -> list[str]:
    """The other axes in the running, as one line if any."""
    if not step.lost:
        return []
    first, others = step.lost[0], len(step.lost) - 1
    more = f", and {others} more" if others else ""
    return [f'      not in the same turn: "{first.axis}" for {dim_text(first.site)} ({first.reason}){more}']


def _all_lost(step: WhyStep) -> list[str]:
    lines = ["      not in the same turn:"] if step.lost else []
    for loss in step.lost:
        lines.append(
            f'        "{loss.axis}" of {dim_text(loss.source)} for {dim_text(loss.site)}, '
            f"factor {loss.factor}"
        )
        lines += wrapped("          ", f"{loss.reason}: {loss.sentence} [{loss.rule}]")
    return lines


def wrapped(indent: str, text: str) -> list[str]:
    """A sentence as lines that fit a screen; paths and names stay whole."""
    wrapper = TextWrapper(_WIDTH, initial_indent=indent, subsequent_indent=indent)
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return wrapper.wrap(text)


def annotation_text(annotation: Annotation, indent: str = "", *, called: bool = False) -> str:
    """An annotation as a line; ``called``: the text before already calls it an annotation."""
    if annotation.spec:
        return f"{indent}{annotation}: {annotation.value} {annotation.text}"
    word = "" if called else "annotated by completion: " if annotation.by == "completion" else "annotated "
    return f"{indent}{word}{annotation.value} {annotation.text}{at(annotation.where, annotation.stack)}"


def given_text(annotations: Sequence[Annotation]) -> str:
    """The annotations that meet: first the user's, then the specs of ``shard_map``s."""
    own = [f"{a.value}{at(a.where, a.stack)}" for a in annotations if not a.spec]
    specs = list(dict.fromkeys(str(a) for a in annotations if a.spec))
    named = [f"the annotation{'s' * (len(own) > 1)} of {' and '.join(own)}"] if own else []
    return f"by {' and '.join([*named, *specs])}"


def stage_text(stage: Stage) -> str:
    """A stage in words."""
    level = "" if stage.level is None else f"op priority {stage.level}, "
    return f"user priority {stage.priority}, {level}{stage.strategy}"


def dim_text(site: Site) -> str:
    """The name of a value with its dimension."""
    return f"{site.value} (a partial sum)" if site.dim == PARTIAL else f"{site.value} dim {site.dim}"


def more_text(n: int, noun: str, hint: str = " (--full shows all)") -> str:
    """How many things are left out, and how to see them."""
    return f"{n} more {noun}{'' if n == 1 else 's'}{hint}"
