"""The one error that users see."""

from __future__ import annotations


class ShardlogError(Exception):
    """Bad input: what is wrong, where, and what to do about it.

    ``str()`` is the whole message, ``where: message`` with the hint on a line of its own. The command line prints it
    and ends with exit status 2.
    """

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        self.message, self.where, self.hint = message, where, hint
        text = f"{where}: {message}" if where else message
        super().__init__(f"{text}\n  hint: {hint}" if hint else text)


def closest(name: str, names: list[str] | tuple[str, ...]) -> str:
    """``did you mean ...?`` for a name that does not exist, or the names that do."""
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(names)}" if names else "there are none"
