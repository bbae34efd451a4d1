"""A place in a text of MLIR that moves on, token by token."""

from __future__ import annotations

import re
from collections.abc import Callable

from ...errors import ShardlogError

SPACE = re.compile(r"(?:\s+|//[^\n]*)*")
OPERAND = re.compile(r"%[\w$.#-]+")
WORD = re.compile(r"[A-Za-z_][\w$.]*")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SYMBOL = re.compile(r'@(?:[\w$.-]+|"(?:[^"\\]|\\.)*")')
_NUMBER = re.compile(r"-?\d+")
_NAME = re.compile(r"!?[\w$.]+")
_VALUE = re.compile(r'[#!]?[\w$.+-]+|"(?:[^"\\]|\\.)*"|@(?:[\w$.:@-]+|"(?:[^"\\]|\\.)*")')
_BRACKET = re.compile(r'//[^\n]*|"(?:[^"\\]|\\.)*"|->|[<>=]=|=>|[()\[\]{}<>]')
_OPENS = {"(": ")", "[": "]", "{": "}", "<": ">"}


class UnfittingError(Exception):
    """A text does not match a format: the place, and the expected text."""

    def __init__(self, at: int, expected: str) -> None:
        super().__init__(expected)
        self.at, self.expected = at, expected


class Cursor:
    """A place ``at`` in a text. Tokens are taken after white space and comments; otherwise UnfittingError is
    raised."""

    def __init__(self, text: str, at: int = 0) -> None:
        self.text, self.at = text, at

    def next(self) -> int:
        """The place of the next token."""
        space = SPACE.match(self.text, self.at)
        assert space is not None  # it matches nothing, too
        return space.end()

    def match(self, pattern: re.Pattern[str], expected: str) -> str:
        """The text that a pattern matches here."""
        at = self.next()
        match = pattern.match(self.text, at)
        if match is None:
            raise UnfittingError(at, expected)
        self.at = match.end()
        return match[0]

    def looks_at(self, word: str) -> bool:
        """Whether a word or a sign is here."""
        at = self.next()
        if not self.text.startswith(word, at):
            return False
        end = at + len(word)
        return not (
            word[-1:].isalnum() and (self.text[end : end + 1].isalnum() or self.text[end : end + 1] == "_")
        )

    def take(self, word: str) -> None:
        """A word or a sign."""
        if not self.looks_at(word):
            raise UnfittingError(self.next(), f"`{word}`")
        self.at = self.next() + len(word)

    def symbol(self) -> str:
        """A symbol, with its @."""
        return self.match(_SYMBOL, "a symbol, as in @grid")

    def operand(self) -> str:
        """A value, with its %."""
        return self.match(OPERAND, "a value, as in %0")

    def number(self) -> str:
        """A whole number."""
        return self.match(_NUMBER, "a number")

    def balanced(self, opening: str) -> str:
        """The text between brackets, with the brackets."""
        start = self.next()
        if not self.text.startswith(opening, start):
            raise UnfittingError(start, f"`{opening}`")
        closing = []
        for bracket in _BRACKET.finditer(self.text, start):
            sign = bracket[0]
            if sign in _OPENS:
                closing.append(_OPENS[sign])
            elif closing and sign == closing[-1]:
                closing.pop()
                if not closing:
                    self.at = bracket.end()
                    return self.text[start : self.at]
        raise UnfittingError(start, f"`{_OPENS[opening]}` for this `{opening}`")

    def type(self) -> str:
        """A type."""
        if self.looks_at("("):
            inputs = self.balanced("(")
            if self.looks_at("->"):
                self.take("->")
                return f"{inputs} -> {self.type()}"
            return inputs
        name = self.match(_NAME, "a type")
        return name + self.balanced("<") if self.text.startswith("<", self.at) else name

    def types(self) -> list[str]:
        """One type or several, with commas, or in parentheses."""
        if self.looks_at("("):
            inside = Cursor(self.balanced("(")[1:-1])
            return [] if not inside.text.strip() else inside.list(inside.type)
        return self.list(self.type)

    def list(self, one: Callable[[], str]) -> list[str]:
        """One or several, with commas."""
        entries = [one()]
        while self.looks_at(","):
            self.take(",")
            entries.append(one())
        return entries

    def value(self) -> str:
        """An attribute."""
        sign = self.text[(at := self.next()) : at + 1]
        if sign and sign in "[{":
            return self.balanced(sign)
        text = self.match(_VALUE, "an attribute")
        if self.text.startswith("<", self.at):
            text += self.balanced("<")
        if self.looks_at(":") and not self.looks_at("::"):
            self.take(":")
            return f"{text} : {self.type()}"
        return text

    def place(self, at: int) -> str:
        """A place as MLIR says it of a text without a name."""
        line = self.text.count("\n", 0, at) + 1
        return f"-:{line}:{at - self.text.rfind(chr(10), 0, at)}"


def error(cursor: Cursor, at: int, message: str, hint: str) -> ShardlogError:
    """An error at a place of a text."""
    return ShardlogError(message, where=cursor.place(at), hint=hint)
