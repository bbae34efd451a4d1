"""The error that users see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from typing import Any, Self

_DISTRIBUTION = __name__.partition(".")[0].replace("_", "-")  # shardlog, or shardlog-datalog
_LONGEST = 200  # characters of a line of a message, which may repeat megabytes of the input
_MANY = 1000  # names


class ShardlogError(Exception):
    """Bad input: where it is, what was expected, and what to do about it.

    ``str()`` is the whole message, ``where: error: message``, with the hint on a line of its own. The command
    line prints it and ends with exit status 2.
    """

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        self.message, self.hint = shortened(message), shortened(hint)
        self.where = where  # whole: of a chain of calls the place is read later
        text = f"{shortened(where) or 'shardlog'}: error: {self.message}"
        super().__init__(f"{text}\n  hint: {self.hint}" if hint else text)

    def at(self, where: str) -> Self:
        """The same error, of its own kind, at another place."""
        moved = type(self)(self.message, where=where, hint=self.hint)
        own = {name: value for name, value in vars(self).items() if name not in vars(moved)}
        vars(moved).update(own)
        return moved

    def __reduce__(self) -> tuple[Any, ...]:
        # As pickle has it for exceptions, the whole message would become the message.
        return partial(type(self), where=self.where, hint=self.hint), (self.message,), self.__dict__


@contextmanager
def from_extra(extra: str, package: str) -> Iterator[None]:
    """Imports a package that only an extra of shardlog brings: raises ShardlogError if it is missing."""
    try:
        yield
    except ImportError:
        raise not_installed(package, extra) from None


def not_installed(package: str, extra: str) -> ShardlogError:
    """The error where a package is missing: it names the extra of shardlog that brings it."""
    return ShardlogError(f"{package} is not installed", hint=f"pip install '{_DISTRIBUTION}[{extra}]'")


def check_text(text: str, where: str) -> None:
    """Raises ShardlogError if ``text`` holds a lone surrogate.

    Python decodes bytes of a command line that are not UTF-8 to such.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ShardlogError("not UTF-8", where=where, hint="expected text in UTF-8") from None


def shortened(text: str) -> str:
    """``text`` with the middle left out of lines that are too long to read."""
    if len(text) <= _LONGEST:
        return text
    tail = _LONGEST // 4
    head = _LONGEST - tail - len(" ... ")
    lines = text.split("\n")
    return "\n".join(s if len(s) <= _LONGEST else f"{s[:head]} ... {s[-tail:]}" for s in lines)


def nearest(name: str, names: Iterable[str]) -> str:
    """The one of ``names`` that is spelt most like ``name``; empty if none is."""
    from difflib import get_close_matches
    from heapq import nlargest

    if not 0 < len(name) <= _LONGEST:
        return ""
    near = [other for other in names if len(other) <= _LONGEST]
    if len(near) > _MANY:  # to compare with each takes long: with those that begin alike
        near = nlargest(_MANY, near, key=lambda other: _alike(name, other))
    return next(iter(get_close_matches(name, near, n=1)), "")


def closest(name: str, names: Iterable[str]) -> str:
    """A hint for a name that does not exist: the nearest of those that do, or a few of them."""
    listed = list(names)
    if near := nearest(name, listed):
        return f"did you mean {near}?"
    if not listed:
        return "there are none"
    return f"there are: {', '.join(listed[:8])}{', ...' if len(listed) > 8 else ''}"


def check_options(given: Iterable[str], names: Iterable[str], where: str) -> None:
    """Raises ShardlogError for the first option that has none of these names."""
    names = list(names)
    for name in given:
        if name not in names:
            raise ShardlogError(f"there is no option {name}", where=where, hint=closest(name, names))


def _alike(one: str, two: str) -> int:
    """With how many characters two names begin alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False)))
