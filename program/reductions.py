"""How what is unreduced is combined. Saved runs are read with this, and without jaxlib."""

from __future__ import annotations

# Why a sharding is fixed on an axis, by the reduction that makes the value of what devices along it hold.
# Products are said in LLVM's dialect mesh only.
UNREDUCED = {
    "sum": "unreduced",
    "max": "unreduced (max)",
    "min": "unreduced (min)",
    "product": "unreduced (product)",
}

# The op that combines two elements, by reduction.
COMBINED_BY = {
    "sum": "stablehlo.add",
    "max": "stablehlo.maximum",
    "min": "stablehlo.minimum",
    "product": "stablehlo.multiply",
}
