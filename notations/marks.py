"""Signs of XLA's strings in a text. Without them, nothing that reads these strings is needed."""

from __future__ import annotations

NAMED = (b"{mesh[", b"{single_device[", b"{maximal_mesh[")  # starts of shardings that name their axes
_STRINGS = (b"xla.sdy.", *NAMED)


def may_have_strings(data: bytes) -> bool:
    """Whether a text may have shardings of sdy as XLA's strings."""
    return any(mark in data for mark in _STRINGS)
