"""The writer of each format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..verdict import Verdict
from . import github, junit, markdown, sarif, text

WRITERS: Mapping[str, Callable[[Verdict], str]] = {
    "text": text.written,
    "github": github.written,
    "sarif": sarif.written,
    "junit": junit.written,
    "markdown": markdown.written,
}
