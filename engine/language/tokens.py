"""The tokens of a text, taken one after the other."""

from __future__ import annotations

from typing import NoReturn

from .diagnostics import Reporter
from .lexer import KEYWORDS, tokenize


class ReportedError(Exception):
    """A syntax error that has been reported: go on with the next statement."""


class TokenReader:
    """The tokens of one text; ``i`` is the next one."""

    def __init__(self, text: str, start: int, reporter: Reporter) -> None:
        tokens = tokenize(text, start, reporter)
        self.text = text
        self.start = start
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.places = tokens.places
        self.sentences = tokens.sentences
        self.comments = tokens.comments
        self.reporter = reporter
        self.i = 0
        self.pairs: dict[int, int] = {}  # opening parentheses, by index: the closing ones

    def accept(self, kind: str) -> bool:
        if self.kinds[self.i] == kind:
            self.i += 1
            return True
        return False

    def take(self, kind: str, what: str) -> str:
        if self.kinds[self.i] != kind:
            self.expected(what)
        self.i += 1
        return self.texts[self.i - 1]

    def qualified(self, what: str) -> tuple[str, int]:
        at = self.places[self.i]
        name = self.take("identifier", what)
        while self.qualifies():
            name += "." + self.texts[self.i + 1]
            self.i += 2
        return name, at

    def qualifies(self) -> bool:
        """Whether a dot and a name follow the last token without a space between them."""
        i, places = self.i, self.places
        return (
            self.kinds[i] == "."
            and self.kinds[i + 1] == "identifier"
            and places[i] == places[i - 1] + len(self.texts[i - 1])
            and places[i + 1] == places[i] + 1
        )

    def expected(self, what: str) -> NoReturn:
        kind, text = self.kinds[self.i], self.texts[self.i]
        shown = "the end of the file" if kind == "end" else f"`{text}`"
        hint = f"`{text}` is a reserved word" if kind in KEYWORDS and kind != "_" else ""
        at, end = self.places[self.i], self.end_of_previous()
        self.error("E0102", end or at, f"expected {what}, found {shown}", hint)

    def end_of_previous(self) -> int | None:
        """The end of the previous token, if that is on an earlier line: something missing belongs there."""
        if self.i == 0:
            return None
        place, text = self.places[self.i - 1], self.texts[self.i - 1]
        gap = self.text[place - self.start : self.places[self.i] - self.start]
        return place + len(text) if "\n" in gap else None

    def later(self, at: int, what: str) -> NoReturn:
        self.error("E0104", at, f"{what} are not supported yet")

    def error(self, code: str, at: int, message: str, hint: str = "") -> NoReturn:
        self.reporter.error(code, at, message, hint)
        raise ReportedError

    def closing(self, opening: int) -> int:
        """The index of the parenthesis that closes this one, or of the end."""
        if opening not in self.pairs:
            # All that are opened from here on, up to where this one closes: each is looked for once.
            kinds, open_, i = self.kinds, [opening], opening
            while open_ and kinds[i] != "end":
                i += 1
                if kinds[i] in ("(", "[", "{"):
                    open_.append(i)
                elif kinds[i] in (")", "]", "}"):
                    self.pairs[open_.pop()] = i
            self.pairs.update(dict.fromkeys(open_, len(kinds) - 2))
        return self.pairs[opening]
