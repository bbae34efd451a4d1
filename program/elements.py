"""The sizes of tensors, by their types as MLIR writes them: saved runs have only these."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod

_UNITS = " KMGT"  # by powers of 1024
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s?(?:([KMGT])i)?B?")
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(.+)>")
_WIDTH = re.compile(r"(?:bf|tf|ui|si|f|i)(\d+)")
_PLAIN = re.compile(r"(bf|f|ui|i)(\d+)(E\w+|)")
_KINDS = {"bf": "bfloat", "f": "float", "ui": "uint", "i": "int"}
_WIDTHS = {"index": 64, "tf32": 32}  # whose width differs from their name


@lru_cache(maxsize=1 << 16)
def bits_of(element: str) -> int:
    """The bits of an element: f32, bf16, f8E4M3FN, i1, ui4, complex<f32>, a quantised type; 0 for types
    without a width."""
    if element.startswith("complex<"):
        return 2 * bits_of(element.removeprefix("complex<").removesuffix(">"))
    if element.startswith("!quant."):  # stored as !quant.uniform<i8:f32, ...> says
        element = element.partition("<")[2]
    element = re.split(r"[,:<]", element)[0]
    match = _WIDTH.match(element)
    return _WIDTHS.get(element) or (int(match[1]) if match else 0)


@lru_cache(maxsize=1 << 16)
def size_of(type_: str) -> int:
    """The bytes of a tensor, if an element takes whole bytes; 0 for types that are no tensors of static
    shape."""
    match = _TENSOR.fullmatch(type_)
    if match is None or match[2].startswith(("?", "*")):
        return 0
    return prod(_sizes(match)) * -(-bits_of(match[2]) // 8)


def shape_of_text(type_: str) -> tuple[int, ...]:
    """The sizes of the dimensions of a tensor of static shape, as its type says them."""
    match = _TENSOR.fullmatch(type_)
    return _sizes(match) if match else ()


def _sizes(match: re.Match[str]) -> tuple[int, ...]:
    """The sizes in a type of a tensor."""
    return tuple(map(int, match[1].split("x")[:-1]))


def bytes_text(n: int) -> str:
    """A number of bytes in the largest unit that it reaches: ``1.5 MiB``."""
    unit = min((n.bit_length() - 1) // 10, len(_UNITS) - 1) if n else 0
    return f"{n / 1024**unit:,.4g} {_UNITS[unit]}iB" if unit else f"{n:,} byte{'' if n == 1 else 's'}"


def bytes_in(text: str) -> int | None:
    """The number of bytes that a size such as ``1.5 MiB``, ``64KiB`` or ``4096`` says; None where it says
    none."""
    match = _SIZE.fullmatch(text.strip())
    return match and int(float(match[1]) * 1024 ** _UNITS.index(match[2] or " "))


def exact_text(n: int) -> str:
    """A number of bytes as ``bytes_text``, and all its digits: ``1.5 MiB (1,572,864 bytes)``."""
    text, exact = bytes_text(n), f"{n:,} byte{'' if n == 1 else 's'}"
    return text if text == exact else f"{text} ({exact})"


def dtype_of(element: str) -> str:
    """The name that NumPy, with ml_dtypes, has for a type of elements: f8E4M3FN is float8_e4m3fn. Empty where
    it has none."""
    if element == "i1":
        return "bool"
    if element.startswith("complex<"):
        return f"complex{bits_of(element)}"
    match = _PLAIN.fullmatch(element)
    if match is None:
        return ""
    kind, bits, rest = match.groups()
    return f"{_KINDS[kind]}{bits}{'_' if rest else ''}{rest.lower()}"
