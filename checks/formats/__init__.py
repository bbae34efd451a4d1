"""The formats of a verdict: text, annotations of GitHub, SARIF, JUnit's XML and Markdown.

Comes in: a ``Verdict``. Goes out: text. ``writers.py`` has a writer for each of the ``FORMATS``.
"""

from __future__ import annotations

FORMATS = ("text", "github", "sarif", "junit", "markdown")
