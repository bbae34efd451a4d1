"""How what is unreduced is combined. Saved runs are read with this, and without jaxlib."""

from __future__ import annotations

# Why a sharding is fixed on an axis, by the reduction that makes the value of what devices along it hold.
UNREDUCED = {"sum": "unreduced", "max": "unreduced (max)", "min": "unreduced (min)"}
