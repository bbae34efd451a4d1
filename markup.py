"""HTML of answers in notebooks: elements whose texts are escaped. Pages have templates (``pages.py``)."""

from __future__ import annotations

from html import escape


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
