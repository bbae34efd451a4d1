"""The formats of a verdict: text, annotations of GitHub, SARIF, JUnit's XML and Markdown.

Comes in: a ``Verdict``. Goes out: text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..verdict import Verdict
from . import github, junit, markdown, sarif, text

FORMATS: Mapping[str, Callable[[Verdict], str]] = {
    "text": text.written,
    "github": github.written,
    "sarif": sarif.written,
    "junit": junit.written,
    "markdown": markdown.written,
}
