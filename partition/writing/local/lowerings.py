"""The functions that write the local form of ops, by their names in ``rules/partition/local.dl``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import alone
from .indexed import INDEXED
from .local import COMPUTED, LocalSite
from .windows import WINDOWS

LOWERINGS: dict[str, Callable[[LocalSite, list[Any]], Sequence[Any]]] = {
    **COMPUTED,
    **INDEXED,
    **WINDOWS,
    "once": alone.once,
    "spread": alone.spread,
}
SENDING = frozenset({"reduce", "select", "once", "spread", *WINDOWS})  # those that may send data inside
