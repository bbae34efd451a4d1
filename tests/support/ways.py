"""The ways to choose shardings that tests and benches partition programs by."""

from __future__ import annotations

from typing import Any


def ways(topology: str) -> dict[str, dict[str, Any]]:
    """What ``Session.partition`` takes for each: with a ``topology`` what is least is time."""
    return {"as decided": {"keep_shardings": True}, "least bytes": {}, "least time": {"topology": topology}}
