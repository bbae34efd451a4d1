"""The version of Shardy to follow: the known lines, and the line of the installed jaxlib.

Shardy has no version of its own. A line is named after the releases of jaxlib that contain it. The rules have
the differences between lines, and ask for ``since``: see ``rules/shardy.dl``.
"""

from __future__ import annotations

import warnings
from functools import cache

from ..errors import ShardlogError

LINES = ("0.10", "0.11", "0.12")  # from the oldest to the newest


@cache
def installed() -> str:
    """The line of the installed jaxlib. Warns, once per process, where that is none of those known."""
    from jaxlib.version import __version__

    return line_of(__version__)


def line_of(version: str) -> str:
    """The line that a version of jaxlib is of, as "0.12" for "0.12.0.1"; the nearest one, with a warning,
    where it is of none that is known."""
    numbers = _numbers(version)
    if (named := ".".join(map(str, numbers))) in LINES:
        return named
    nearest = LINES[-1] if numbers > _numbers(LINES[-1]) else LINES[0]
    warnings.warn(
        f"the Shardy of jaxlib {version} is not known: shardings are decided as by the Shardy of jaxlib "
        f"{nearest}; install jaxlib {LINES[0]} to {LINES[-1]}, or a newer shardlog, or select one, as in "
        f"--shardy {nearest} or shardy={nearest!r}",
        stacklevel=3,
    )
    return nearest


def unusable(error: Exception) -> ShardlogError | None:
    """The message about a jaxlib that is missing, or lacks an imported name; None of other errors."""
    if not isinstance(error, ImportError) or (error.name or "").partition(".")[0] != "jaxlib":
        return None
    hint = f"install jaxlib {LINES[0]} to {LINES[-1]}, as pip install 'shardlog[jax]' does"
    return ShardlogError(f"jaxlib cannot be used: {error}", where="shardlog", hint=hint)


def newer() -> str:
    """The advice about features that the installed jaxlib does not have."""
    from jaxlib.version import __version__

    later = f"install a newer jaxlib: those up to {LINES[-1]} are known"
    if installed() == LINES[-1]:
        later = f"lower the program with a jaxlib that is known, {LINES[0]} to {LINES[-1]}"
    return f"this is jaxlib {__version__}: if the name is right, it belongs to a newer Shardy; {later}"


def _numbers(version: str) -> tuple[int, ...]:
    """The first two numbers of a version; none where it does not begin with numbers."""
    parts = version.split(".")[:2]
    return tuple(map(int, parts)) if all(map(str.isdecimal, parts)) else ()
