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

# How an average is combined, in place of an op: devices add, and divide by their number.
AVERAGE = "average"

# The op that combines two elements, by reduction. Of a generic one nothing is known.
COMBINED_BY = {
    "sum": "stablehlo.add",
    "max": "stablehlo.maximum",
    "min": "stablehlo.minimum",
    "product": "stablehlo.multiply",
    "bitwise_and": "stablehlo.and",
    "bitwise_or": "stablehlo.or",
    "bitwise_xor": "stablehlo.xor",
    "average": AVERAGE,
}

# The reductions of equal values that are the value: devices may have parts of it by having it whole.
OF_EQUALS = ("max", "min", "bitwise_and", "bitwise_or", "average")
