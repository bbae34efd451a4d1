"""The formats of statements, as ``rules/dialects/statements.dl`` has them, taken apart."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container
from dataclasses import dataclass
from functools import cache

from ...rulebook.shipped import shipped

_TOKEN = re.compile(
    r"(?P<word>[\w]+)=(?P<kind>%\w+(?::[\w!.]+)?|\w+)(?:\((?P<of>[\w,]+)\))?(?P<may>\?)?"
    r"|\$(?P<attribute>\w+):(?P<its>\w+)(?P<may_be>\?)?"
    r"|@(?P<symbol>\w+)|%(?P<operand>\w+)(?::(?P<type>!?\w+(?:\.\w+)*|=))?(?P<several>\.\.\.)?"
    r"|<(?P<part>\w+)(?P<names>[\w ]*)>(?P<part_may>\?)?"
    r"|(?P<close>\}\?)|(?P<open>\{)|(?P<sign>->|\w+|[^\s\w])"
)


@dataclass(frozen=True)
class Element:
    """A part of a format. ``kind`` is one of "sign", "word" with its value, "symbol", "attribute", "mixed",
    "operand", "operands", "optional", or the word between angles. ``name`` is the sign or the name; ``of``
    the kind of an attribute, or the type of operands; ``names`` the names of operands; ``inner`` the elements
    inside."""

    kind: str
    name: str = ""
    of: str = ""
    names: tuple[str, ...] = ()
    inner: tuple[Element, ...] = ()


@dataclass(frozen=True)
class OpFormat:
    """How an op is written: its ``formats``, and these as ``texts`` for a reader; the groups of operands that
    generic form counts, ``segments``; attributes that it has besides, ``defaults``; and attributes that are
    words of a kind, ``keywords``."""

    formats: tuple[tuple[Element, ...], ...]
    own: int  # formats of the op itself, before the formats of all ops of its dialect
    texts: tuple[str, ...]
    segments: tuple[str, ...]
    defaults: dict[str, str]
    keywords: dict[str, str]

    def lacks(self, attributes: Container[str], operands: int) -> str:
        """The parts that an op lacks for its first format; empty if it fits one of its formats."""
        each = [self._lacks(format_, attributes, operands) for format_ in self.formats[: self.own]]
        return each[0] if each and all(each) else ""

    def fitting(self, attributes: Container[str], operands: int) -> tuple[Element, ...]:
        """The first format that an op fits, or the first of all."""
        fits = (format_ for format_ in self.formats if not self._lacks(format_, attributes, operands))
        return next(fits, self.formats[0])

    def _lacks(self, format_: tuple[Element, ...], attributes: Container[str], operands: int) -> str:
        labels, values = _needed(format_)
        missing = [label for label in labels if label not in attributes and label not in self.defaults]
        few = f"{operands} of at least {values} operands" if operands < values else ""
        return f"no attribute {missing[0]}" if missing else few


class Formats:
    """The statements of all dialects that are read here."""

    def __init__(self) -> None:
        rows = shipped("dialects/statements").evaluate({})
        self._formats: dict[str, dict[int, str]] = defaultdict(dict)
        for op, index, text in rows["statement"]:
            self._formats[op][index] = text
        self._segments = {op: tuple(names.split()) for op, names in rows["segmented"]}
        self._unsegmented = {op for (op,) in rows["unsegmented"]}
        self._defaults: dict[str, dict[str, str]] = defaultdict(dict)
        for op, attribute, value in rows["default"]:
            self._defaults[op][attribute] = value
        self._keywords: dict[str, dict[str, str]] = defaultdict(dict)
        for op, attribute, kind in rows["keyword"]:
            self._keywords[op][attribute] = kind
        self._like: dict[str, str] = dict(rows["respelled"])
        self._words: dict[str, dict[str, str]] = defaultdict(dict)
        for dialect, word, other in rows["spelled"]:
            self._words[dialect][other] = word
        self.dialects = sorted({op.partition(".")[0] for op in self._formats})
        self._known: dict[str, OpFormat | None] = {}

    def of(self, op: str) -> OpFormat | None:
        """How an op is written; None where that is not known."""
        if op not in self._known:
            self._known[op] = self._find(op)
        return self._known[op]

    def _find(self, op: str) -> OpFormat | None:
        dialect, _, name = op.partition(".")
        canonical, words = op, dict[str, str]()
        if op not in self._formats and dialect in self._like:
            words = self._words[dialect]
            names = {word: other for other, word in words.items()}
            canonical = f"{self._like[dialect]}.{names.get(name, name)}"
        every = f"{dialect}.*"
        formats = [text for _, text in sorted(self._formats.get(canonical, {}).items())]
        own = len(formats)
        if dialect in self._like or not formats:
            formats += [text for _, text in sorted(self._formats.get(every, {}).items())]
        if not formats:
            return None
        segments = self._segments.get(canonical) or self._segments.get(every, ())
        defaults = {words.get(k, k): words.get(v, v) for k, v in self._defaults[canonical].items()}
        elements = [_elements(text, words) for text in formats]
        return OpFormat(
            tuple(elements),
            own,
            tuple(_in_words(each) for each in elements),
            () if canonical in self._unsegmented else segments,
            defaults,
            self._keywords[every] | self._keywords[canonical],
        )


@cache
def formats() -> Formats:
    """The formats of statements, read once."""
    return Formats()


_EXAMPLES = {
    "axes": "[0, 1]",
    "axis_lists": "[[0], [1]]",
    "dims": "2x3",
    "index": "0",
    "i64": "1",
    "i64s": "[0, 1]",
    "list": "[0, 1]",
    "reduction": "max",
    "partial": "max[0]",
    "string": '"text"',
}


def _in_words(elements: tuple[Element, ...]) -> str:
    """A format, shown as a statement. Optional parts are in parentheses with a question mark."""
    text = " ".join(filter(None, map(_in_word, elements)))
    for sign in ("(", "["):
        text = text.replace(f" {sign} ", sign)
    for sign in (")", "]", ","):
        text = text.replace(f" {sign}", sign)
    return text


def _in_word(element: Element) -> str:
    if element.kind == "word":
        return f"{element.name} = {_in_words(element.inner)}"
    if element.kind == "optional":
        return f"({_in_words(element.inner)})?"
    if element.kind == "attribute":
        return element.name if element.of == "unit" else _EXAMPLES.get(element.of, "attribute")
    if element.kind == "symbol":
        return "@name" if element.name == "sym_name" else f"@{element.name}"
    if element.kind in ("operand", "operands"):
        return f"%{element.name}" + ", ..." * (element.kind == "operands")
    fixed = {
        "sign": element.name,
        "mixed": "[0, 1]",
        "type": "type",
        "types": "types",
        "function": "(types) -> type",
        "region": "{ region }",
        "short": "{ op }",
    }
    return fixed.get(element.kind, "")


def _needed(elements: tuple[Element, ...]) -> tuple[list[str], int]:
    """The attributes of a format that may not be left out, and how many operands may not."""
    labels, values = list[str](), 0
    for element in elements:
        if element.kind in ("attribute", "symbol", "mixed"):
            labels.append(element.name)
        elif element.kind == "operand":
            values += 1
        elif element.kind == "word":
            inner, count = _needed(element.inner)
            labels, values = labels + inner, values + count
    return labels, values


def _elements(text: str, words: dict[str, str]) -> tuple[Element, ...]:
    """The elements of a format, with other words in place of some."""
    levels: list[list[Element]] = [[]]

    def add(element: Element, optional: str | None) -> None:
        levels[-1].append(Element("optional", inner=(element,)) if optional else element)

    for token in _TOKEN.finditer(text):
        if token["open"]:
            levels.append([])
        elif token["close"]:
            inner = tuple(levels.pop())
            levels[-1].append(Element("optional", inner=inner))
        elif word := token["word"]:
            word = words.get(word, word)
            if token["kind"].startswith("%"):
                name, _, type_ = token["kind"][1:].partition(":")
                value = Element("operand", name, words.get(type_, type_))
                add(Element("word", word, inner=(value,)), token["may"])
            elif of := token["of"]:
                attribute, dynamic, type_ = of.split(",")
                value = Element("mixed", attribute, type_, (dynamic,))
                add(Element("word", word, inner=(value,)), token["may"])
            else:
                add(Element("word", word, inner=(Element("attribute", word, token["kind"]),)), token["may"])
        elif token["attribute"]:
            add(Element("attribute", token["attribute"], token["its"]), token["may_be"])
        elif token["symbol"]:
            add(Element("symbol", words.get(token["symbol"], token["symbol"])), None)
        elif token["operand"]:
            type_ = words.get(token["type"], token["type"] or "")
            add(Element("operands" if token["several"] else "operand", token["operand"], type_), None)
        elif token["part"]:
            add(Element(token["part"], names=tuple(token["names"].split())), token["part_may"])
        else:
            add(Element("sign", token["sign"]), None)
    return tuple(levels[0])
