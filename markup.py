"""HTML of answers in notebooks: tables, and elements with escaped texts. Pages have their own templates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, *content: object, **attributes: object) -> Html:
    """An element; its content is escaped unless it is ``Html``, and its attributes always are.

    Underscores at the end of attributes are left out: ``class_``.
    """
    given = "".join(f' {key.rstrip("_")}="{escape(str(value))}"' for key, value in attributes.items())
    return Html(f"<{name}{given}>{joined(*content)}</{name}>")


def joined(*content: object, by: str = "") -> Html:
    """Pieces of HTML one after another; texts are escaped."""
    return Html(by.join(each if isinstance(each, Html) else escape(str(each)) for each in content))


def html_table(names: Sequence[str], rows: Iterable[Sequence[Any]], most: int = 1000) -> Html:
    """A table of HTML; of more than ``most`` rows the first ones, and how many more there are."""
    listed = list(rows)
    lines = [_html_row("th", names), *(_html_row("td", row) for row in listed[:most])]
    if len(listed) > most:
        left = element("td", f"... {len(listed) - most:,} more", colspan=len(names))
        lines.append(element("tr", left))
    return element("table", joined("", *lines, "", by="\n"))


def _html_row(cell: str, values: Iterable[Any]) -> Html:
    return element("tr", *(element(cell, value) for value in values))
