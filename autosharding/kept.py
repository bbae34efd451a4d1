"""Shardings that the user fixes, besides the module's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from ..errors import ShardlogError, closest
from ..importers.specs import dimensions, is_spec
from .ends import End, Ends, named
from .plan import spec_of, text_of

_NONE = ("", "-", "none", "None")
_AXIS = re.compile(r'"((?:[^"\\]|\\.)*)"')
_PART = re.compile(r'":\(')  # of an axis
_WHOLE_AXES = re.compile(r"""\[\s*(?:\{(?:"(?:[^"\\]|\\.)*"|[?,\s])*\}[,\s]*)*\]""")


def kept(texts: Sequence[str], ends: Ends, axes: Mapping[str, int]) -> tuple[Ends, tuple[str, ...]]:
    """The boundary with the shardings that texts such as "batch[0]=data" keep, and the corresponding
    annotations. A text gives the axes of each dimension, from the first, of all ends with a name or below
    it. State has one sharding at both ends. ``axes`` are the axes of the mesh.

    Raises ShardlogError for names and axes that do not exist, for dimensions that axes do not divide, and for
    shardings that contradict each other.
    """
    shardings: dict[tuple[str, int], tuple[str, str]] = {}  # for each end the sharding, and its source
    sides = {"argument": ends.arguments, "result": ends.results}
    for noun, side in sides.items():
        for n, end in enumerate(side):
            if end.fixed:
                if _PART.search(end.fixed):
                    hint = "give the parts of an axis names of their own in the mesh"
                    raise ShardlogError(
                        f"{end.name} is {end.fixed}: a plan has whole axes", where="auto", hint=hint
                    )
                shardings[noun, n] = end.fixed, f"the module's sharding of {end.name}"
    for text in texts:
        where = f"--keep '{text}'"
        name, sharding = _split(text, where)
        noun = "result" if name.startswith("result") else "argument"
        for n in named(name, sides[noun], where, noun):
            _say(
                shardings, (noun, n), _sharding(sharding, sides[noun][n], where, axes), where, sides[noun][n]
            )
    for result, argument in ends.state.items():
        one, other = shardings.get(("argument", argument)), shardings.get(("result", result))
        if one:
            _say(shardings, ("result", result), *one, ends.results[result])
        elif other:
            _say(shardings, ("argument", argument), *other, ends.arguments[argument])
    annotated = {
        noun: tuple(
            replace(end, fixed=shardings[noun, n][0]) if (noun, n) in shardings else end
            for n, end in enumerate(side)
        )
        for noun, side in sides.items()
    }
    fixed = Ends(annotated["argument"], annotated["result"], ends.state)
    new = [
        f"{f'%arg{n}' if noun == 'argument' else f'result#{n}'}={sharding}"
        for (noun, n), (sharding, _) in shardings.items()
        if not sides[noun][n].fixed
    ]
    return fixed, tuple(new)


def _split(text: str, where: str) -> tuple[str, str]:
    name, equals, sharding = text.partition("=")
    if not (name.strip() and equals):
        hint = "expected a value and the axes of its dimensions, as in batch[0]=data or w=-,model"
        raise ShardlogError("not a sharding to keep", where=where, hint=hint)
    return name.strip(), sharding.strip()


def _say(
    shardings: dict[tuple[str, int], tuple[str, str]],
    key: tuple[str, int],
    sharding: str,
    where: str,
    end: End,
) -> None:
    if key in shardings and shardings[key][0] != sharding:
        message = f"{end.name} is to be {sharding}, and {shardings[key][0]} by {shardings[key][1]}"
        raise ShardlogError(message, where=where, hint="keep one of them, or say both alike")
    shardings.setdefault(key, (sharding, where))


def _sharding(text: str, end: End, where: str, axes: Mapping[str, int]) -> str:
    """The sharding of an end in Shardy's notation, from the axes of its dimensions."""
    if end.shape is None:
        raise ShardlogError(f"{end.name} is not a tensor", where=where, hint="keep a tensor with dimensions")
    if text.startswith("["):
        if not _WHOLE_AXES.fullmatch(text):
            hint = 'expected axes for each dimension, as in [{"data"}, {}]'
            raise ShardlogError("not a sharding to keep", where=where, hint=hint)
        dims = spec_in(text)
    elif is_spec(text):
        dims_text = dimensions(text, where, len(end.shape))
        dims = tuple(tuple(_AXIS.findall(part)) for part in re.findall(r"\{([^}]*)\}", dims_text))
    else:
        parts = [part.strip() for part in text.split(",")]
        dims = tuple(() if part in _NONE else tuple(part.split("+")) for part in parts)
        dims += ((),) * (len(end.shape) - len(dims))
    if len(dims) > len(end.shape) or (text.startswith("[") and len(dims) < len(end.shape)):
        message = f"{len(dims)} entries for {end.name}, which has {len(end.shape)} dimensions"
        raise ShardlogError(message, where=where, hint="give the axes of each dimension, from the first")
    used = [name for dim in dims for name in dim]
    for name in used:
        if name not in axes:
            raise ShardlogError(f"the mesh has no axis {name}", where=where, hint=closest(name, axes))
        if used.count(name) > 1:
            raise ShardlogError(f"axis {name} is used twice", where=where, hint="use an axis once")
    for size, names in zip(end.shape, dims, strict=True):
        if size % (parts_of := prod(axes[name] for name in names)):
            message = f"{size} elements of {end.name} are not divided evenly in {parts_of} parts"
            raise ShardlogError(message, where=where, hint="keep a sharding with parts of equal size")
    return text_of(spec_of(dims))


def spec_in(text: str) -> tuple[tuple[str, ...], ...]:
    """The axes of each dimension in a sharding in Shardy's notation; sub-axes keep their notation."""
    body = text[text.index("[") : text.rindex("]")]
    return tuple(tuple(_AXIS.findall(part)) for part in re.findall(r"\{([^}]*)\}", body))
