"""The names that a text gives its values.

MLIR keeps only the places at which values are defined, not their names. It would number the values itself,
and differently: a module in normal form has fewer ops than its text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jaxlib.mlir import ir

from ...program.carried import SPELLING
from ...program.mlir.types import FunctionOp, Value
from .marks import ANNOTATIONS, may_have_shardings

_DEFINED = re.compile(
    rb"//[^\n]*|"
    rb"(?P<results>%[\w$.-]+(?::\d+)?(?:\s*,\s*%[\w$.-]+(?::\d+)?)*)\s*=\s*"
    rb"(?P<op>\"?[A-Za-z_][\w.$-]*)[^%\n]*(?P<first>%[\w$.#-]+)?"
    rb"|(?P<argument>%[\w$.-]+)\s*:"
)
_RESULT = re.compile(rb"(%[\w$.-]+)(?::(\d+))?")
_WRITTEN = 0, 0  # the place of ops that are not in the text
_PLACE = re.compile(r'loc\("-":(\d+):(\d+)\)')


@dataclass(frozen=True)
class ValueNames:
    """Names of the values of a function. ``of`` has the name of each value; ``also`` maps further names to
    the numbers of values."""

    of: list[str]
    also: dict[str, int] = field(default_factory=dict)


class TextNames:
    """The names of values in a text, by the places of their definitions."""

    def __init__(self, data: bytes) -> None:
        starts = [0, *(match.end() for match in re.finditer(rb"\n", data))]
        self._names: dict[tuple[int, int], list[str]] = {}
        self._annotations: list[
            tuple[tuple[int, int], str, str]
        ] = []  # its place, its result and its operand

        def place(at: int) -> tuple[int, int]:
            line = bisect_right(starts, at)
            return line, at - starts[line - 1] + 1

        for match in _DEFINED.finditer(data):
            if match["argument"]:
                self._names.setdefault(place(match.start("argument")), [match["argument"].decode()])
            elif match["results"]:
                results, where = _results(match["results"]), place(match.start("op"))
                self._names[where] = results
                if match["op"].decode().strip('"') in ANNOTATIONS and match["first"]:
                    self._annotations.append((where, results[0], match["first"].decode()))

    def of(self, function: FunctionOp) -> ValueNames | None:
        """The names of the values of a function, in order. None if a value at its outermost level has no name
        in the text, because the function comes from another text."""
        listed, numbers, places = list[str](), dict[str, int](), set[tuple[int, int]]()
        whole, printed = True, list[str]()

        def add(place: tuple[int, int], values: list[Value], level: int) -> None:
            nonlocal whole
            names = self._names.get(place)
            whole &= names is not None or not values or level > 0 or place == _WRITTEN
            unnamed = len(values) - len(names or ())  # a loop may carry a counter before what the text names
            for i, value in enumerate(values, -max(unnamed, 0)):
                name = names[i] if names is not None and 0 <= i < len(names) else ""
                printed.append(value.get_name())
                name = name or printed[-1]
                earlier = numbers.get(name)
                if earlier is not None:  # one op of the text became several: the last has its name
                    listed[earlier] = f"{name}.{earlier}"
                numbers[name] = len(listed)
                listed.append(name)

        def walk(region: Any, level: int) -> None:
            block = region.blocks[0]
            for argument in block.arguments:
                places.add(_place(argument))
                add(_place(argument), [argument], level)
            for op in block.operations:
                places.add(_place(op))
                add(_place(op), list(op.results), level)
                for inner in op.regions:
                    walk(inner, level + 1)

        walk(function.regions[0], 0)
        if not whole:
            return None
        first, last = min(places - {_WRITTEN}, default=_WRITTEN), max(places)
        also = {name: i for i, name in enumerate(printed) if "arg" in name and name not in numbers}
        for where, name, operand in self._annotations:
            if first <= where <= last and where not in places and name not in numbers:
                number = numbers.get(operand, also.get(operand))
                if number is not None:
                    also[name] = number
        return ValueNames(listed, also)


def names_of(data: bytes, module: ir.Module) -> Callable[[Any], ValueNames | None]:
    """The names of the values of each function of a module, as in its text. None for texts without MLIR's
    sharding dialects: MLIR itself numbers these in the order of the text."""
    if SPELLING not in module.operation.attributes or not may_have_shardings(data):
        return lambda function: None
    return TextNames(data).of


def _results(text: bytes) -> list[str]:
    """The names of results: ``%a, %b:2`` are %a, %b#0 and %b#1."""
    names = list[str]()
    for result in _RESULT.finditer(text):
        name = result[1].decode()
        names += [name] if result[2] is None else [f"{name}#{i}" for i in range(int(result[2]))]
    return names


def _place(value: Any) -> tuple[int, int]:
    match = _PLACE.fullmatch(str(value.location))
    return (int(match[1]), int(match[2])) if match else _WRITTEN
