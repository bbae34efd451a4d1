"""TOML files: their values by tomllib, and the lines of their entries by tomlkit."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import DottedKey, Item, Key, Whitespace

from .errors import ShardlogError

_MESSAGE = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)")


def toml_values(text: str, name: str, hint: str) -> dict[str, Any]:
    """The values of a TOML document. ``name`` is the name of its file, for errors.

    Raises ShardlogError, with the place and the ``hint``, if the text is not TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _MESSAGE.fullmatch(str(error))
        where = f"{match[2]}:{match[3]}" if match and match[2] else str(max(len(text.splitlines()), 1))
        message = match[1] if match else str(error)
        raise ShardlogError(f"not TOML: {message}", where=f"{name}:{where}", hint=hint) from None
    except RecursionError:
        raise ShardlogError("lists nest too deeply", where=name, hint=hint) from None


def entry_lines(text: str, name: str, hint: str) -> Iterator[tuple[str, int, int]]:
    """The key of each entry of a document, and its lines, from 0, the end left out.

    Raises ShardlogError, with the ``hint``, if tomlkit cannot read the text.
    """
    first = 0
    try:
        body = tomlkit.parse(text).body
    except TOMLKitError as error:
        raise ShardlogError(f"not TOML: {error}", where=name, hint=hint) from None
    except RecursionError:
        raise ShardlogError("lists nest too deeply", where=name, hint=hint) from None
    for key, item in body:
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
