"""Folding: tensors with equal explanations, such as those of repeated layers, share one entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

_NAMES = 4  # of those that are not shown
# SSA names, numbers of results, indices in JAX paths and in what modules are called.
_VARIES = re.compile(
    r"(?:@[^\s:]+:)?%\w+(?:#\d+)?(?:'\d+)?|(?<=result#)\d+|(?<!_specs)\[\d+\]|(?<=[a-z]_)\d+\b"
)
_ALL = "(--full shows all)"


def pattern(text: str) -> str:
    """A text without the parts that differ between repeated layers."""
    return " ".join(_VARIES.sub("*", text).split())


def groups(answers: Sequence[T], text_of: Callable[[T], str]) -> list[list[T]]:
    """Groups of equal things, in the order of the first of each."""
    by_pattern: dict[str, list[T]] = {}
    for answer in answers:
        by_pattern.setdefault(pattern(text_of(answer)), []).append(answer)
    return list(by_pattern.values())


def others(names: Sequence[str]) -> str:
    """The names of the tensors that share the entry of one that is shown."""
    distinct = list(dict.fromkeys(names))
    more = f", ... ({len(distinct) - _NAMES} more)" if len(distinct) > _NAMES else ""
    return f"{', '.join(distinct[:_NAMES])}{more}"


def left_out(count: int, noun: str) -> str:
    """A line that counts the entries left out."""
    return f"... {count:,} more {noun}{'' if count == 1 else 's'} {_ALL}"
