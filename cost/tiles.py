"""How large tensors are in a memory of tiles, as that of TPUs is: they take whole ones."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from math import prod

from ..program.elements import shape_of_text, size_of

_WORD = 4  # bytes of an element of a tile; narrower ones share it, wider ones are several


@cache
def tiled_size(type_: str, lanes: int, sublanes: int) -> int:
    """The bytes of a tensor where a row of a tile has so many elements, and a tile so many rows. A tile of
    less than these has two rows, four and so on. The dimensions that lie in tiles are those for which the
    tensor is smallest; a vector lies in all rows of a tile."""
    shape, plain = shape_of_text(type_), size_of(type_)
    if not plain:
        return 0
    width = plain // prod(shape)
    words, bits = max(width // _WORD, 1), min(width, _WORD)
    if len(shape) < 2:
        size, row = prod(shape) * bits, lanes * _WORD
        return words * _whole(size, min(max(_power(size), row), sublanes * row))
    sizes = (
        prod(shape) // (rows * columns) * _whole(rows, _rows(rows, bits, sublanes)) * _whole(columns, lanes)
        for rows, columns in permutations(shape, 2)
    )
    return words * bits * min(sizes)


def _rows(size: int, width: int, most: int) -> int:
    """The rows of a tile for a dimension of a size; words are filled."""
    return min(max(_power(size), _WORD // width), most)


def _power(number: int) -> int:
    """The least power of two that is no smaller."""
    return 1 << (number - 1).bit_length()


def _whole(size: int, step: int) -> int:
    """The least multiple of a step that is no smaller."""
    return -(-size // step) * step
