"""Explanations as HTML for notebooks: no scripts, no style sheets, readable in dark mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from ...runs.table import html_table
from ..explanation import Explanation, Step
from .text import annotation_text, dims_text, proof_lines, step_lines, why_title

if TYPE_CHECKING:
    from ...runs.result import Result

_MOST = 100  # rows of arguments, and of results


def text_html(text: str) -> str:
    """Text as it is."""
    return f"<pre>{escape(text)}</pre>"


def why_html(explanation: Explanation) -> str:
    """The chain of an explanation; each step opens to its proof."""
    lines = [f"<div><pre>{escape(why_title(explanation))}</pre>", *map(_step, explanation.steps)]
    lines.append(f"<pre>{escape(annotation_text(explanation.origin))}</pre>")
    others = [annotation_text(annotation, said=True) for annotation in explanation.needs[1:]]
    if others:
        rows = "".join(f"<li><code>{escape(other)}</code></li>" for other in others)
        lines.append(f"which rests on the annotations of these too:<ul>{rows}</ul>")
    return "\n".join([*lines, "</div>"])


def _step(step: Step) -> str:
    first, *rest = step_lines(step)
    proof = escape("\n".join(proof_lines(step)))
    said = escape("\n".join(line.strip() for line in rest))
    return (
        f"<details><summary><code>{escape(first.strip())}</code></summary><pre>{said}</pre>"
        f"<details><summary>proof</summary><pre>{proof}</pre></details></details>"
    )


def result_html(result: Result) -> str:
    """A run as a table: the shardings of the arguments and of the results of its main function."""
    graph = result.program.graph
    arguments = [graph.main.place + v for v in graph.main.function.arguments]
    last = int(graph.places)
    results = range(last - len(graph.result_places), last)
    names = ("", "type", "sharding")
    tables = [
        f"<details open><summary>{len(numbers):,} {what}</summary>"
        f"{html_table(names, _rows(result, numbers), _MOST)}</details>"
        for what, numbers in (("arguments", arguments), ("results", results))
    ]
    return "\n".join([f"<div><pre>{escape(repr(result))}</pre>", *tables, "</div>"])


def _rows(result: Result, numbers: Sequence[int]) -> Iterator[tuple[str, str, str]]:
    record = result.record
    for number in numbers:
        value = record.value(number)
        dims = [record.meshes.text(atoms, ",") for atoms in record.axes(number)]
        yield value.where or value.name, value.type, dims_text(dims)
