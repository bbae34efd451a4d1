"""The reductions of unreduced values. Saved runs are read with this, and without jaxlib."""

from __future__ import annotations

# Why a sharding is fixed on an axis, by the reduction that combines the parts of devices along it. Only
# LLVM's dialect mesh has products.
UNREDUCED = {
    "sum": "unreduced",
    "max": "unreduced (max)",
    "min": "unreduced (min)",
    "product": "unreduced (product)",
    "bitwise_and": "unreduced (bitwise_and)",
    "bitwise_or": "unreduced (bitwise_or)",
    "bitwise_xor": "unreduced (bitwise_xor)",
    "average": "unreduced (average)",
    "generic": "unreduced (generic)",
}

# The op that combines two elements, by reduction. An average has none, and of a generic one nothing is known.
COMBINED_BY = {
    "sum": "stablehlo.add",
    "max": "stablehlo.maximum",
    "min": "stablehlo.minimum",
    "product": "stablehlo.multiply",
    "bitwise_and": "stablehlo.and",
    "bitwise_or": "stablehlo.or",
    "bitwise_xor": "stablehlo.xor",
}

# The reductions of equal values that are the value: devices may have parts of it by having it whole.
OF_EQUALS = ("max", "min", "bitwise_and", "bitwise_or")
