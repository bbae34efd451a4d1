"""Colours for people who read in a terminal. Text that goes anywhere else stays unchanged."""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO

# Eight colours, as the terminal has them: they can be read on light and on dark ground.
_LOOKS = {
    "error": "1;31",  # bold red
    "warning": "1;33",
    "hint": "36",
    "place": "36",  # cyan: where to look
    "axis": "32",  # green: what something is sharded on
    "value": "1",  # bold: what it is about
    "op": "34",
}
_PARTS = re.compile(
    r"(?P<error>\berror(\[E\d+\])?:)"
    r"|(?P<warning>\bwarning(\[W\d+\])?:)"
    r"|(?P<hint>^ *hint:)"
    r"|(?P<place>(?<![\w./-])[\w./+-]*\w\.(py|mlir|mlirbc|dl|rules|toml)(:\d+)+)"
    r"|(?P<axis>\"[^\"\n]*\")"
    r"|(?P<value>(?<!\w)%\w+(#\d+)?|\bresult#\d+)"
    r"|(?P<op>\b(stablehlo|chlo|mhlo|sdy|func)\.\w+)",
    re.MULTILINE,
)


def show(text: object, file: TextIO | None = None) -> None:
    """Prints text, with colours where a terminal shows it. The default of ``file`` is standard output."""
    stream = sys.stdout if file is None else file
    print(painted(str(text)) if _wanted(stream) else text, file=stream)


def painted(text: str) -> str:
    """Text with colours."""

    def paint(match: re.Match[str]) -> str:
        return f"\x1b[{_LOOKS[str(match.lastgroup)]}m{match[0]}\x1b[0m"

    return _PARTS.sub(paint, text)


def _wanted(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user wants colours (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
