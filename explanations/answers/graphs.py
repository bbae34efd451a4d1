"""Derivations as graphs, for Graphviz and Mermaid: from the annotations down to the explained shardings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...program.mlir.origins import at
from ...runs.records.record import Annotation
from ..steps import Site, WhyStep
from .text import dim_text, stage_text
from .why import Explanation

_MERMAID = {c: f"#{ord(c)};" for c in '#"&<>%`\\;{}[]|$'}


@dataclass
class _Graph:
    """Lines of text for every node, and for every edge between two nodes. Annotations are apart."""

    nodes: dict[object, tuple[str, ...]] = field(default_factory=dict)
    annotations: dict[object, tuple[str, ...]] = field(default_factory=dict)
    edges: dict[tuple[object, object, tuple[str, ...]], None] = field(default_factory=dict)
    needs: dict[tuple[object, object], None] = field(default_factory=dict)

    def numbers(self) -> dict[object, str]:
        """A short name for every node."""
        return {node: f"n{i}" for i, node in enumerate([*self.annotations, *self.nodes])}


def dot(explanations: Iterable[Explanation]) -> str:
    """Derivations as a graph in Graphviz's language; common parts appear once."""
    graph = _graph(explanations)
    names = graph.numbers()
    lines = ["digraph why {", "  node [shape=box, style=rounded];"]
    for node, texts in graph.annotations.items():
        lines.append(f"  {names[node]} [label={_quoted(texts)}, style=filled, fillcolor=lightgrey];")
    for node, texts in graph.nodes.items():
        lines.append(f"  {names[node]} [label={_quoted(texts)}];")
    for start, end, texts in graph.edges:
        label = f" [label={_quoted(texts)}]" if texts else ""
        lines.append(f"  {names[start]} -> {names[end]}{label};")
    for start, end in graph.needs:
        lines.append(f'  {names[start]} -> {names[end]} [style=dashed, label="rests on"];')
    return "\n".join([*lines, "}"])


def mermaid(explanations: Iterable[Explanation]) -> str:
    """Derivations as a Mermaid flowchart; common parts appear once."""
    graph = _graph(explanations)
    names = graph.numbers()
    lines = ["flowchart TB"]
    for node, texts in graph.annotations.items():
        lines.append(f"  {names[node]}[[{_escaped(texts)}]]")
    for node, texts in graph.nodes.items():
        lines.append(f"  {names[node]}({_escaped(texts)})")
    for start, end, texts in graph.edges:
        label = f"|{_escaped(texts)}|" if texts else ""
        lines.append(f"  {names[start]} -->{label} {names[end]}")
    for start, end in graph.needs:
        lines.append(f'  {names[start]} -.->|"rests on"| {names[end]}')
    return "\n".join(lines)


def _graph(explanations: Iterable[Explanation]) -> _Graph:
    graph = _Graph()
    for explanation in explanations:
        axis, end = explanation.axis, explanation.site
        origin = _annotated(graph, explanation.origin)
        reached = _node(graph, end, axis)
        for step in explanation.steps:
            # The operand of a loop, its carried value and its result share one sharding: a turn may reach
            # another of these.
            gained = _node(graph, step.site, axis)
            if gained != reached:
                graph.edges.setdefault((gained, reached, ("the same sharding",)))
            reached = _node(graph, step.source, axis) if step.kind != "priority" else origin
            if reached != gained:  # a visit gives an op's result what its users want of it
                graph.edges.setdefault((reached, gained, _turn(step)))
        if reached != origin:
            graph.edges.setdefault((origin, reached, ()))
        for other in explanation.needs[1:]:
            graph.needs.setdefault((_annotated(graph, other), _node(graph, end, axis)))
    return graph


def _annotated(graph: _Graph, annotation: Annotation) -> object:
    place = filter(None, (annotation.where, annotation.stack))
    graph.annotations.setdefault(annotation.cell, (f"annotated {annotation.value}", annotation.text, *place))
    return annotation.cell


def _node(graph: _Graph, site: Site, axis: str) -> object:
    key = site.value, site.dim, axis
    graph.nodes.setdefault(key, _site(site, axis))
    return key


def _site(site: Site, axis: str) -> tuple[str, ...]:
    place = filter(None, (site.where, site.stack))
    return (f'{dim_text(site)} on "{axis}"', site.type, *place)


def _turn(step: WhyStep) -> tuple[str, ...]:
    if step.kind == "priority":
        return ("its priority has come", stage_text(step.stage))
    if step.kind == "visit":
        along = f"{step.from_slot} -> {step.to_slot}, loop {step.factor}"
        return (f"{step.op}{at(step.where, step.stack)}", along, step.stage.strategy)
    along = f"{step.from_slot} -> {step.to_slot}, factor {step.factor}"
    return (f"{step.op}{at(step.where, step.stack)}", along, stage_text(step.stage))


def _quoted(lines: Iterable[str]) -> str:
    """A string of Graphviz with its lines to the left."""
    escaped = (text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for text in lines)
    return '"' + "".join(text + "\\l" for text in escaped) + '"'


def _escaped(lines: Iterable[str]) -> str:
    """A string of Mermaid, with codes for characters that would end it or have a meaning in it."""
    return '"' + "<br>".join("".join(_MERMAID.get(c, c) for c in text) for text in lines) + '"'
