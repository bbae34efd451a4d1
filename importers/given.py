"""Annotations given to a run, in one or several forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class Several(tuple[Any, ...]):
    """Annotations that are given more than once, each in a form of its own."""


Given = str | Mapping[str, Any] | Sequence[Any]  # annotations, see ``Options.annotate``
