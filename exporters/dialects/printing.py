"""Ops of the sharding dialects in readable syntax, in a text that has them in generic form.

The formats are those for reading (``rules/dialects/statements.dl``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...importers.dialects.cursor import Cursor, UnfittingError
from ...importers.dialects.formats import Element, OpFormat, formats
from ...program.carried import DYNAMIC

_HEAD = r'^(?P<head> *(?:%[^"=]*= )?)"(?P<name>(?:shard|mesh|mpi|bufferization)\.\w+)"'
_OP = re.compile(rf"{_HEAD}(?=\()", re.MULTILINE)
_LINE = re.compile(rf"{_HEAD}\((?P<operands>[^()]*)\)(?P<rest> [^\n]*)$", re.MULTILINE)
_PLACE = "operand__"
_NAMED = re.compile(rf"%{_PLACE}(\d+)")
_DYNAMIC = str(DYNAMIC)
_SEGMENTS = "operandSegmentSizes"
_NUMBERS = re.compile(r"-?\d+")


def pretty(text: str) -> str:
    """The text with each op of shard or mesh in the form of its dialect."""
    alike: dict[tuple[str, int, str], _Form | None] = {}  # by all but its operands: the form, or none

    def on_one_line(match: re.Match[str]) -> str:
        """An op that stands on a line; ops that differ only in their operands have one form."""
        head, name, inside, rest = match.groups()
        operands = inside.split(", ") if inside else []
        key = name, len(operands), rest
        if key not in alike:
            alike[key] = _form(*key)
        form = alike[key]
        return match[0] if form is None else head + form.text % tuple(map(operands.__getitem__, form.places))

    return _pretty(_LINE.sub(on_one_line, text))


@dataclass(frozen=True)
class _Form:
    """The form of an op, with %s where an operand is, and which operand that is."""

    text: str
    places: tuple[int, ...]


def _form(name: str, operands: int, rest: str) -> _Form | None:
    """The form of an op in generic form with a rest behind its operands; None where it stays as it is."""
    line = f'"{name}"({", ".join(f"%{_PLACE}{i}" for i in range(operands))}){rest}'
    printed = _pretty(line)
    if printed == line:
        return None
    parts = _NAMED.split(printed)
    return _Form("%s".join(part.replace("%", "%%") for part in parts[::2]), tuple(map(int, parts[1::2])))


def _pretty(text: str) -> str:
    parts, done = list[str](), 0
    for match in _OP.finditer(text):
        statement = formats().of(match["name"])
        if match.start() < done or statement is None:
            continue
        try:
            op = _PrintedOp(text, match.end(), statement)
            written = op.written()
        except UnfittingError:
            continue  # the form says less than the op: generic form says it all
        parts += [text[done : match.start()], match["head"], match["name"], written]
        done = op.end
    parts.append(text[done:])
    return "".join(parts)


class _PrintedOp:
    """An op in generic form: its operands, attributes and types, as text."""

    def __init__(self, text: str, at: int, statement: OpFormat) -> None:
        self.statement = statement
        cursor = Cursor(text, at)
        inside = cursor.balanced("(")[1:-1]
        self.operands = [operand.strip() for operand in inside.split(",")] if inside.strip() else []
        self.attributes = _dictionary(cursor.balanced("{")[1:-1]) if cursor.looks_at("{") else {}
        cursor.take(":")
        self.takes = cursor.types()
        cursor.take("->")
        self.gives = cursor.types()
        self.end = cursor.at
        for label, value in statement.defaults.items():
            if self.attributes.get(label) == value:
                del self.attributes[label]
        self.attributes.pop(_SEGMENTS, None)
        self.places = dict[str, int]()  # of operands, by the names that the format gives them
        self.waiting = list(self.operands)

    def written(self) -> str:
        """What stands behind the op's name."""
        elements = self.statement.fitting(self.attributes, len(self.operands))
        words = [word for element in elements for word in self.of(element)]
        if self.waiting or self.attributes:
            raise UnfittingError(0, "nothing beyond its form")
        text = " ".join(words)
        for sign in ("(", "["):
            text = text.replace(f"{sign} ", sign)
        for sign in (")", "]", ","):
            text = text.replace(f" {sign}", sign)
        return ("" if text[:1] == "(" else " ") + re.sub(r"(@\S+) \(", r"\1(", text)

    def of(self, element: Element) -> Sequence[str]:
        """The words of an element."""
        if element.kind == "optional":
            return [w for e in element.inner for w in self.of(e)] if self.has(element.inner) else []
        if element.kind == "sign":
            return [element.name]
        if element.kind == "symbol":
            value = self.attributes.pop(element.name)
            return ["@" + value.strip('"').lstrip("@") if value.startswith('"') else value]
        if element.kind == "word":
            return [f"{element.name} =", *self.of(element.inner[0])]
        if element.kind == "attribute":
            value = self.attributes.pop(element.name)
            return [element.name if element.of == "unit" else _ATTRIBUTES.get(element.of, _as_is)(value)]
        if element.kind == "mixed":
            return [self.mixed(element)]
        if element.kind == "operand":
            return [self.value(element.name)]
        if element.kind == "operands":
            taken, self.waiting = self.waiting, []
            return [", ".join(taken)]
        if element.kind == "attrs":
            return self.dictionary()
        return [self.types(element)]

    def has(self, elements: Sequence[Element]) -> bool:
        """Whether the op has an attribute, an operand or a result that these elements say."""
        for element in elements:
            inner = element.inner[0] if element.kind == "word" else element
            if inner.kind in ("attribute", "mixed") and inner.name in self.attributes:
                return True
            if (inner.kind == "operand" and self.waiting) or (inner.names == ("result",) and self.gives):
                return True
        return False

    def value(self, name: str) -> str:
        if not self.waiting:
            raise UnfittingError(0, "an operand")
        self.places[name] = len(self.operands) - len(self.waiting)
        return self.waiting.pop(0)

    def mixed(self, element: Element) -> str:
        """A list of numbers, some given as operands; ? where no operand is left."""
        numbers = _NUMBERS.findall(self.attributes.pop(element.name).partition(":")[2])
        given = (self.waiting.pop(0) if self.waiting else "?" for _ in range(numbers.count(_DYNAMIC)))
        return f"[{', '.join(next(given) if n == _DYNAMIC else n for n in numbers)}]"

    def dictionary(self) -> Sequence[str]:
        """The attributes that the form has no words for."""
        held = [f"{label} = {value}" if value else label for label, value in self.attributes.items()]
        self.attributes.clear()
        return ["{" + ", ".join(held) + "}"] if held else []

    def types(self, element: Element) -> str:
        """The types of operands or results."""
        if element.kind == "function":
            gives = self.gives[0] if len(self.gives) == 1 else f"({', '.join(self.gives)})"
            return f"({', '.join(self.takes)}) -> {gives}"
        if element.kind == "types":
            return ", ".join(self.gives if "result" in element.names else self.takes)
        if element.kind == "type":
            name = element.names[0]
            return self.gives[0] if name == "result" else self.takes[self.places.get(name, 0)]
        raise UnfittingError(0, "a form without regions")


def _as_is(value: str) -> str:
    return value


def _behind_colon(value: str) -> str:
    return f"[{value.partition(':')[2].strip().rstrip('>')}]" if ":" in value else "[]"


def _number(value: str) -> str:
    return value.partition(" :")[0]


def _dims(value: str) -> str:
    return "x".join("?" if n == _DYNAMIC else n for n in _NUMBERS.findall(value.partition(":")[2]))


def _lists(value: str) -> str:
    return value[value.index("[") : value.rindex("]") + 1]


def _kind(value: str) -> str:
    if value.startswith("#mesh.partial"):
        return value.removeprefix("#mesh.partial")
    return value.rstrip(">").rpartition(" ")[2]


def _opclass(value: str) -> str:
    return value.removeprefix("#mpi.opclass<").removesuffix(">")


def _sharding(value: str) -> str:
    return value.removeprefix("#mesh.shard")


_ATTRIBUTES: dict[str, Callable[[str], str]] = {
    "axes": _behind_colon,
    "axis_lists": _lists,
    "index": _number,
    "i64": _number,
    "dims": _dims,
    "reduction": _kind,
    "sharding": _sharding,
    "opclass": _opclass,
}


def _dictionary(text: str) -> dict[str, str]:
    """The entries of a dictionary of attributes: a unit has no text."""
    entries, cursor = dict[str, str](), Cursor(text)
    while cursor.next() < len(text):
        label = cursor.match(re.compile(r'[\w.$]+|"[^"]*"'), "the name of an attribute")
        entries[label] = ""
        if cursor.looks_at("="):
            cursor.take("=")
            entries[label] = cursor.value()
        if cursor.looks_at(","):
            cursor.take(",")
    return entries
