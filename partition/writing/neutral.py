"""Neutral elements of combining ops."""

from __future__ import annotations

from jaxlib.mlir import ir

from ...program.elements import bits_of

_EXTREMES = {  # of floats, the least and the largest; finite for types without infinities
    "bf16": ("0xFF80", "0x7F80"),
    "f16": ("0xFC00", "0x7C00"),
    "f32": ("0xFF800000", "0x7F800000"),
    "f64": ("0xFFF0000000000000", "0x7FF0000000000000"),
    "f8E3M4": ("0xF0", "0x70"),
    "f8E4M3": ("0xF8", "0x78"),
    "f8E4M3FN": ("0xFE", "0x7E"),
    "f8E4M3FNUZ": ("0xFF", "0x7F"),
    "f8E4M3B11FNUZ": ("0xFF", "0x7F"),
    "f8E5M2": ("0xFC", "0x7C"),
    "f8E5M2FNUZ": ("0xFF", "0x7F"),
}


def neutral(combine: str, element: ir.Type) -> str:
    """The neutral element of a combining op, as MLIR writes it. Raises KeyError if it is unknown."""
    text = str(element)
    name = combine.partition(".")[2]
    if name in ("add", "or", "xor"):
        return zero(element)
    if name == "multiply":
        return "true" if text == "i1" else "1.0" if _floats(element) or text.startswith("complex") else "1"
    if name == "and":
        return "true" if text == "i1" else "-1" if not text.startswith("ui") else str(2 ** bits_of(text) - 1)
    if name not in ("maximum", "minimum") or text.startswith("complex"):
        raise KeyError(combine)
    which = 0 if name == "maximum" else 1
    if text == "i1":
        return ("false", "true")[which]
    if _floats(element):
        return _EXTREMES[text][which]
    bits = bits_of(text)
    if text.startswith("ui"):
        return ("0", str(2**bits - 1))[which]
    return (str(-(2 ** (bits - 1))), str(2 ** (bits - 1) - 1))[which]


def _floats(element: ir.Type) -> bool:
    return str(element).startswith(("f", "bf"))


def zero(element: ir.Type) -> str:
    """Zero, or false, as MLIR writes it."""
    text = str(element)
    floats = _floats(element) or text.startswith("complex")
    return "false" if text == "i1" else "0.0" if floats else "0"
