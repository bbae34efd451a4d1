"""The lines of the entries of a TOML file: tomllib has their values, and tomlkit what they look like."""

from __future__ import annotations

from collections.abc import Iterator

import tomlkit
from tomlkit.items import DottedKey, Item, Key, Whitespace


def entry_lines(text: str) -> Iterator[tuple[str, int, int]]:
    """The key of each entry of a document, and its lines, from 0, the end left out.

    Raises TOMLKitError where tomlkit does not read the text.
    """
    first = 0
    for key, item in tomlkit.parse(text).body:
        written = _written(key, item)
        if key is not None:
            name = key.as_string() if isinstance(key, DottedKey) else key.key
            yield name, first, first + written.count("\n") + (written[-1:] != "\n")
        first += written.count("\n")


def _written(key: Key | None, item: Item) -> str:
    """An entry, a comment or white space as it stands in the document."""
    if isinstance(item, Whitespace):
        return item.s
    trivia = item.trivia
    if key is None:
        return f"{trivia.indent}{item.as_string()}"
    entry = f"{key.as_string()}{key.sep}{item.as_string()}"
    return f"{trivia.indent}{entry}{trivia.comment_ws}{trivia.comment}{trivia.trail}"
