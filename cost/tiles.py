"""The size of tensors in tiled memory, as on TPUs: they take whole tiles."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from math import prod

from ..program.elements import shape_of_text, size_of

_WORD = 4  # bytes of an element of a tile; narrower elements share one, wider ones take several


@cache
def tiled_size(type_: str, lanes: int, sublanes: int) -> int:
    """The bytes of a tensor in tiles of this many rows with this many elements. A tensor with fewer rows has
    tiles of two rows, four, and so on. The tiled dimensions are chosen so that the tensor is smallest. A
    vector uses all rows of a tile."""
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
    """The rows of a tile for a dimension of this size; words are filled."""
    return min(max(_power(size), _WORD // width), most)


def _power(number: int) -> int:
    """The least power of two that is not smaller."""
    return 1 << (number - 1).bit_length()


def _whole(size: int, step: int) -> int:
    """The least multiple of a step that is not smaller."""
    return -(-size // step) * step
