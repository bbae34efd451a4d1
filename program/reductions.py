"""The reductions of unreduced values. Saved runs are read with this, and without jaxlib."""

from __future__ import annotations

# Why a sharding is fixed on an axis, by the reduction that combines the parts of devices along it. Only
# LLVM's dialect mesh has products.
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
