"""Explanations as HTML for notebooks: no scripts, no style sheets, readable in dark mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...markup import Html, element, html_table, joined
from .text import dims_text

if TYPE_CHECKING:  # answers of saved runs need no jaxlib
    from ...runs.result import Result

_ROWS = 100  # rows of arguments, and of results


def text_html(text: str) -> Html:
    """Text, unchanged."""
    return element("pre", text)


def result_html(title: str, result: Result) -> Html:
    """The shardings of a run's arguments and results as a table under a title."""
    graph = result.program.graph
    arguments = [graph.main.place + v for v in graph.main.function.arguments]
    last = int(graph.places)
    results = range(last - len(graph.result_places), last)
    names = ("", "type", "sharding")
    tables = [
        element(
            "details",
            element("summary", f"{len(numbers):,} {noun}"),
            html_table(names, _rows(result, numbers), _ROWS),
            open="",
        )
        for noun, numbers in (("arguments", arguments), ("results", results))
    ]
    return element("div", joined(element("pre", title), *tables, by="\n"))


def _rows(result: Result, numbers: Sequence[int]) -> Iterator[tuple[str, str, str]]:
    record = result.record
    for number in numbers:
        value = record.value(number)
        dims = [record.meshes.text(atoms, ",") for atoms in record.axes(number)]
        yield value.where or value.name, value.type, dims_text(dims)
