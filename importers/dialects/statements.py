"""Statements of dialects that jaxlib lacks, in generic form: a text with the same lines, and no other
changes.

Properties of generic form (``<{...}>``) are written among the attributes, because MLIR hides the properties
of unknown ops.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

from ...errors import ShardlogError
from ...program.carried import DYNAMIC
from .attributes import ATTRIBUTES, entries
from .bodies import body
from .cursor import Cursor, UnfittingError, error
from .formats import Element, OpFormat, formats
from .marks import ANNOTATIONS, SHARDINGS, may_have_statements

_KEYWORD = re.compile(r"\b(\w+)(\s*=\s*)([A-Za-z_]\w*)(?=\s*(?:,|$))")
_BEFORE = {"", *" \t\n\r={}:)"}  # the name of an op
_ALIAS = re.compile(r"#[\w$.-]+")
_ITERATOR = re.compile(r"#linalg\.iterator_type<(\w+)>")
_ENCODING = re.compile(r"#mesh\.shard<[^<>\"]*>")  # of a type; MLIR compares them by their text
_NAME = re.compile(r"(%[\w$.#-]+)")
_SHARDING = re.compile(rf"\s*%1\s*=\s*({'|'.join(map(re.escape, (*SHARDINGS, *ANNOTATIONS)))})\b[^{{}}\"]*")
_PLACE = re.compile(r"%(\d+)\b")
_LABEL = re.compile(r"(?:\s+|//[^\n]*)*\^")
_MIXED = re.compile(r"-?\d+|\?|%[\w$.#-]+(?:\s*:.*)?")
_WITHOUT_PROPERTIES = re.compile(r"\([^()\"]*\)\s*[:{(]")  # of an op in generic form
_GOES_ON = re.compile(r"\s*(?://[^\n]*+\s*)*+(?:->|[:,=(<\[{]|(?:ins|outs|attrs)\b)")  # in the next line
_WORDS = {"true", "false", "unit", "dense", "array"}


_TARGET = re.compile(rb"(\bmodule\b[^{}\n]*\{[^{}\n]*(?<![\w.]))dlti(\s*=)")


@cache
def _heads() -> re.Pattern[str]:
    """Comments, strings, brackets of regions, and endings of op names. Their first characters come first, so
    most places are skipped quickly."""
    names = sorted(formats().dialects)
    first = "".join(sorted({name[0] for name in names}))
    rests = (rf"(?<={name[0]}){name[1:]}\.[A-Za-z_]\w*" for name in names)
    comment, string = r"(?<=/)/[^\n]*", r'(?<=")(?:[^"\\\n]|\\.)*"'
    return re.compile(rf'[/"{{}}{first}](?:{comment}|{string}|{"|".join(rests)}|(?<=[{{}}]))')


def in_generic_form(data: bytes, *, bodies: bool = False, one_each: bool = False) -> bytes:
    """A text in which jaxlib can read every known statement; the same bytes if there is none. With ``bodies``
    ops have the regions that generic form has and their statements do not. With ``one_each`` only the first
    of equal shardings remains. Then the text does not parse where anything but an annotation uses another.

    Raises ShardlogError for a malformed statement.
    """
    if not may_have_statements(data):
        return data
    if b"dlti" in data:  # of the target, by the name of a dialect alone, which jaxlib does not have
        data = _TARGET.sub(rb"\1dlti.map\2", data)
    text = _ITERATOR.sub(r'"\1"', data.decode(errors="surrogateescape"))  # as statements write them
    text = _ENCODING.sub(lambda match: _spaced(match[0]), text)
    try:
        return _Text(text, bodies, one_each).all().encode(errors="surrogateescape")
    except RecursionError:
        hint = "programs nest a few levels deep; move the inner ops into a function"
        raise ShardlogError("regions or types nest too deeply", hint=hint) from None


def _spaced(encoding: str) -> str:
    """An encoding as MLIR spaces it, on as many lines as it has."""
    return "".join(encoding.split()).replace(",", ", ").replace("=", " = ") + "\n" * encoding.count("\n")


@dataclass(frozen=True)
class _Line:
    """The generic form of a line, with %s where a name is, and the places of the names among its words.
    ``op`` is the op of a sharding or an annotation; ``may_go_on``: the next line may belong to it."""

    form: str
    places: tuple[int, ...]
    op: str
    may_go_on: bool


@dataclass
class _Scope:
    """The shardings between two brackets: their names by their statements, and for the name of one that is
    left out the name of the first that says the same."""

    shardings: dict[str, str] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)


class _Text:
    """A text whose statements are rewritten. Lines that differ only in names of values are read once."""

    def __init__(self, text: str, bodies: bool, one_each: bool = False, *, by_lines: bool = True) -> None:
        self.text, self.bodies, self.one_each, self.by_lines = text, bodies, one_each, by_lines
        self.heads = _heads()
        self.lines: dict[tuple[str, ...], _Line | None] = {}
        self.scopes = [_Scope()]  # those that are open

    def all(self) -> str:
        """All of it."""
        return self.until("")[0]

    def until(self, closing: str, at: int = 0) -> tuple[str, int]:
        """The text from a place up to the bracket that closes the region that it is in, or to its end; and
        the place of that."""
        text, parts, done, depth = self.text, list[str](), at, 0
        while at < len(text):
            end = _end_of_line(text, at)
            if self.by_lines and (line := self.line(at, end)) is not None:
                parts += text[done:at], line
                done, at = end, end + 1
                continue
            while match := self.heads.search(text, at, end):
                at = match.end()
                head = match[0]
                if head == "{":
                    depth += 1
                    self.scopes.append(_Scope())
                elif head == "}":
                    depth -= 1
                    if depth < 0 and closing:
                        parts.append(text[done : match.start()])
                        return "".join(parts), match.start()
                    if depth >= 0:
                        self.scopes.pop()
                elif rewritten := self.rewritten(head, match.start(), at):
                    parts += text[done : match.start()], rewritten[0]
                    done = at = rewritten[1]
                    end = max(end, _end_of_line(text, at))
            at = end + 1
        parts.append(text[done:])
        return "".join(parts), len(text)

    def rewritten(self, head: str, start: int, at: int) -> tuple[str, int] | None:
        """The generic form of the op whose name or its ending is between two places, and the place behind it.
        None for others."""
        if head[0] == '"':
            return self.generic(start, at)
        if head[0] == "/" or self.text[start - 1 : start] not in _BEFORE:
            return None
        if self.text.startswith((" =", "=", ",", "}"), at):  # an attribute
            return None
        return self.statement(head, at)

    def line(self, at: int, end: int) -> str | None:
        """A line in generic form, or the rest of one. None if brackets or statements of it end elsewhere."""
        words = _NAME.split(self.text[at:end])
        key = tuple(words[::2])
        if key not in self.lines:
            self.lines[key] = _line(words, self.bodies)
        line = self.lines[key]
        if line is None or (line.may_go_on and _GOES_ON.match(self.text, end)):
            return None
        if self.one_each and line.op:
            if line.op in SHARDINGS:
                if len(words) == 3 and self.is_again(words[1], words[2].strip()):
                    return ""
            elif len(words) == 7:  # the names of its result, its operand and its sharding
                words[5] = next(
                    (each.first[words[5]] for each in self.scopes if words[5] in each.first), words[5]
                )
        return line.form % tuple(map(words.__getitem__, line.places))

    def is_again(self, name: str, key: str) -> bool:
        """Whether an earlier sharding says the same as one with this name. The name stands for that then."""
        first = next((each.shardings[key] for each in self.scopes if key in each.shardings), None)
        scope = self.scopes[-1]
        if first is None:
            scope.shardings[key] = name
        elif name != first and name not in scope.first:  # or else MLIR refuses it
            scope.first[name] = first
            return True
        return False

    def statement(self, op: str, at: int) -> tuple[str, int] | None:
        """The generic form of a statement, whose name ends at a place; and the place behind it. None where it
        is not known how the op is written."""
        statement = formats().of(op)
        if statement is None:
            return None  # MLIR names it
        failures = list[UnfittingError]()
        for elements in statement.formats:
            reading = _Reading(self, op, statement, at)
            try:
                reading.of(elements)
                if _GOES_ON.match(self.text, reading.cursor.at):
                    raise UnfittingError(reading.cursor.next(), "the end of the line")
                return reading.generic(), reading.cursor.at
            except UnfittingError as failure:
                failures.append(failure)
        furthest = max(failures, key=lambda failure: failure.at)
        cursor = Cursor(self.text)
        hint = f"its form is: {op} {statement.texts[failures.index(furthest)]}"
        raise error(cursor, furthest.at, f"{op}: expected {furthest.expected}", hint)

    def generic(self, start: int, at: int) -> tuple[str, int] | None:
        """An op in generic form whose quoted name ends at a place, without properties, and the place behind
        it. None if there is no such op, or nothing to change."""
        if _WITHOUT_PROPERTIES.match(self.text, at):
            return None
        name = self.text[start + 1 : at - 1]
        if name.partition(".")[0] not in formats().dialects:
            return None
        cursor = Cursor(self.text, at)
        if not cursor.looks_at("("):
            return None
        try:
            cursor.balanced("(")
            if cursor.looks_at("["):
                cursor.balanced("[")
            head = self.text[start : cursor.at]
            if not cursor.looks_at("<{"):
                return None
            properties = cursor.balanced("<")[2:-2].strip()
            regions, before = "", cursor.at
            if cursor.looks_at("("):
                regions = self.regions(cursor)
                before = cursor.at
            if cursor.looks_at("{"):
                held = cursor.balanced("{")[1:-1].strip()
                properties = ", ".join(filter(None, (properties, held)))
            else:
                cursor.at = before
            return f"{head}{regions} {{{properties}}}", cursor.at
        except UnfittingError:
            return None  # MLIR reports the error

    def alias(self, cursor: Cursor) -> str:
        """The entries of the dictionary that an alias stands for."""
        name = cursor.match(_ALIAS, "a dictionary of attributes")
        match = re.search(rf"(?m)^[ \t]*{re.escape(name)}[ \t]*=", self.text)
        if match is None:
            raise UnfittingError(cursor.at, f"an alias that is defined, not {name},")
        return Cursor(self.text, match.end()).balanced("{")[1:-1].strip()

    def regions(self, cursor: Cursor) -> str:
        """Regions in parentheses."""
        parts = [" ("]
        cursor.take("(")
        while True:
            parts.append("{" + self.region(cursor) + "}")
            if not cursor.looks_at(","):
                break
            cursor.take(",")
            parts.append(", ")
        cursor.take(")")
        return "".join((*parts, ")"))

    def region(self, cursor: Cursor) -> str:
        """The contents of a region, in generic form."""
        cursor.take("{")
        level = len(self.scopes)
        self.scopes.append(_Scope())
        try:
            inside, cursor.at = self.until("}", cursor.at)
        finally:  # it may be read again, in another format
            del self.scopes[level:]
        cursor.take("}")
        return inside


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _line(words: list[str], bodies: bool) -> _Line | None:
    """The generic form of a line that is split at the names of its values. None if brackets or statements of
    it end elsewhere."""
    text = "".join(word if i % 2 == 0 else f"%{i}" for i, word in enumerate(words))
    heads, depth = _heads().findall(text), 0
    for head in heads:
        depth += (head == "{") - (head == "}")
        if depth < 0:
            return None
    if depth:
        return None
    try:
        generic = _Text(text, bodies, by_lines=False).all()
    except ShardlogError:  # or it goes on in the next line
        return None
    parts = _PLACE.split(generic)
    form = "%s".join(part.replace("%", "%%") for part in parts[::2])
    op = _SHARDING.fullmatch(text)
    return _Line(form, tuple(map(int, parts[1::2])), op[1] if op else "", bool(heads))


class _Reading:
    """A statement that is being read."""

    def __init__(self, text: _Text, op: str, statement: OpFormat, at: int) -> None:
        self.text, self.op, self.statement = text, op, statement
        self.cursor, self.start = Cursor(text.text, at), at
        self.operands: dict[str, list[str]] = {}
        self.types: dict[str, list[str]] = {}
        self.attributes: dict[str, str] = {}
        self.function = ""
        self.regions: list[str] = []
        self.bound: list[str] = []  # the arguments of blocks that are operands
        self.lines_before_region = 0
        self.short = ""
        self.may_say = set[str]()  # the attributes of the format

    def of(self, elements: tuple[Element, ...]) -> None:
        """Reads a statement of a format."""
        self.may_say = {*_attributes(elements)}
        self.read(elements)

    def read(self, elements: tuple[Element, ...]) -> None:
        """Reads the elements of a format."""
        for element in elements:
            _READERS[element.kind](self, element)

    def sign(self, element: Element) -> None:
        self.cursor.take(element.name)

    def word(self, element: Element) -> None:
        self.cursor.take(element.name)
        self.cursor.take("=")
        self.read(element.inner)

    def symbol(self, element: Element) -> None:
        symbol = self.cursor.symbol()
        if element.name == "sym_name":
            symbol = symbol[1:] if symbol[1] == '"' else f'"{symbol[1:]}"'
        self.attributes[element.name] = symbol

    def operand(self, element: Element) -> None:
        self.operands[element.name] = [self.cursor.operand()]
        self.types[element.name] = [element.of] if element.of else []

    def several(self, element: Element) -> None:
        operands = self.cursor.list(self.cursor.operand)
        self.operands[element.name] = operands
        self.types[element.name] = [element.of] * len(operands) if element.of else []

    def optional(self, element: Element) -> None:
        """An optional part is present if its first element is."""
        cursor, first = self.cursor, element.inner[0]
        before = cursor.at
        try:
            _READERS[first.kind](self, first)
        except UnfittingError:
            if first.kind == "word" and cursor.at > before:  # present, but incomplete
                raise
            cursor.at = before
            return
        self.read(element.inner[1:])

    def attribute(self, element: Element) -> None:
        kind, cursor = element.of, self.cursor
        if kind == "unit":
            cursor.take(element.name)
            self.attributes[element.name] = ""
            return
        self.attributes[element.name] = ATTRIBUTES[kind](cursor, self.op)

    def mixed(self, element: Element) -> None:
        """Numbers, some given as operands."""
        numbers, given = list[str](), list[str]()
        start = self.cursor.next()
        for entry in entries(self.cursor.balanced("[")):
            if not _MIXED.fullmatch(entry):
                raise UnfittingError(start, f"numbers, values or ?, not {entry}")
            if entry.startswith("%"):
                given.append(entry.partition(":")[0].strip())
            numbers.append(str(DYNAMIC) if entry.startswith(("%", "?")) else entry)
        self.attributes[element.name] = f"array<i64: {', '.join(numbers)}>" if numbers else "array<i64>"
        (dynamic,) = element.names
        self.operands[dynamic], self.types[dynamic] = given, [element.of] * len(given)

    def attrs(self, element: Element) -> None:
        """A dictionary of attributes, or an alias of one."""
        if self.cursor.looks_at("#"):
            held = self.text.alias(self.cursor)
        elif self.cursor.looks_at("{"):
            held = self.cursor.balanced("{")[1:-1].strip()
        else:
            return
        keywords, dialect = self.statement.keywords, self.op.partition(".")[0]
        if keywords and held:
            held = _KEYWORD.sub(lambda match: _in_full(match, keywords, dialect), held)
        if held:
            self.attributes[f"\0{len(self.attributes)}"] = held

    def type(self, element: Element) -> None:
        self._typed(element, [self.cursor.type()])

    def several_types(self, element: Element) -> None:
        self._typed(element, self.cursor.types())

    def _typed(self, element: Element, types: list[str]) -> None:
        for name in element.names:
            self.types[name] = types * len(self.operands.get(name, "0")) if len(types) == 1 else types

    def function_type(self, element: Element) -> None:
        start = self.cursor.next()
        self.cursor.balanced("(")
        self.cursor.take("->")
        self.cursor.types() if self.cursor.looks_at("(") else self.cursor.type()
        self.function = self.text.text[start : self.cursor.at].replace("\n", " ")

    def results(self, element: Element) -> None:
        if "result" not in self.types:
            types = [t for name in element.names for t in self.types.get(name, ())]
            self.types["result"] = [t for t in types if t.startswith("tensor")]

    def read_region(self, element: Element) -> None:
        """A region; with names, the arguments of its block stand before it, or an op stood for it."""
        cursor = self.cursor
        self.lines_before_region = self.lines_before_region or self._lines()
        if element.names and self.short:
            self.regions.append(self._of_short(element.names))
            return
        arguments = ""
        if element.names and cursor.looks_at("("):
            inside = cursor.balanced("(")
            arguments = f" ^bb0{inside}:" if inside[1:-1].strip() else ""
        if not self.regions:
            self.lines_before_region = self.text.text.count("\n", self.start, cursor.next())
        region = self.text.region(cursor)
        if self.bound and not _LABEL.match(region):
            kinds = Cursor(self.function).types() if self.function else self.types["inputs"]
            named = zip(self.bound, kinds, strict=False)
            arguments = f" ^bb0({', '.join(f'{name}: {kind}' for name, kind in named)}):"
        self.regions.append(f"{arguments}{region}")

    def read_bound(self, element: Element) -> None:
        """Operands as the arguments that they are in blocks: (%x = %0, %y = %1). Blocks may say so, too."""
        cursor = self.cursor
        cursor.take("(")

        def one() -> str:
            self.bound.append(cursor.operand())
            cursor.take("=")
            return cursor.operand()

        self.operands[element.names[0]] = cursor.list(one)
        cursor.take(")")

    def _lines(self) -> int:
        """The ends of lines so far."""
        return self.text.text.count("\n", self.start, self.cursor.at)

    def _of_short(self, groups: tuple[str, ...]) -> str:
        """The region of an op in short form: its op takes the operands; for a reduction the result comes
        first."""
        op, _, attributes = self.short.partition("{")
        types = [_element(t) for name in groups for t in self.types.get(name, ())]
        names = [f"%short_{i}" for i in range(len(types))]
        arguments = ", ".join(f"{name}: {t}" for name, t in zip(names, types, strict=True))
        inputs = len(self.types.get(groups[0], ()))
        reduces = "dimensions" in self.attributes
        taken = [*range(inputs, len(names)), *range(inputs)] if reduces else [*range(inputs)]
        result = types[-1]
        values = ", ".join(names[i] for i in taken)
        kinds = ", ".join(types[i] for i in taken)
        held = f" {{{attributes}" if attributes else ""
        combiner = f'%short = "{op.strip()}"({values}){held} : ({kinds}) -> {result}'
        return f'^bb0({arguments}): {combiner} "linalg.yield"(%short) : ({result}) -> () '

    def read_short(self, element: Element) -> None:
        self.short = self.cursor.balanced("{")[1:-1].strip()

    def read_body(self, element: Element) -> None:
        """The region that an op has by its name, where the rules have a body for it."""
        if not self.text.bodies:
            return
        types = [[_element(t) for t in self.types.get(name, ())] for name in element.names]
        if (region := body(self.op, types[0], types[1], self.attributes)) is not None:
            self.regions.append(region)
        self.lines_before_region = self._lines()

    def generic(self) -> str:
        """The statement in generic form, with as many lines."""
        groups, attributes = self.operands, dict(self.attributes)
        segments = self.statement.segments
        order = [*segments, *(name for name in groups if name not in segments)]
        values = [value for name in order for value in groups.get(name, ())]
        for name in order:
            if len(self.types.get(name, ())) != len(groups.get(name, ())) and not self.function:
                operands = ", ".join(groups.get(name, [f"%{name}"]))
                raise UnfittingError(self.cursor.at, f"a type for each of {operands}")
        for attribute, value in self.statement.defaults.items():
            if attribute in self.may_say:
                attributes.setdefault(attribute, value)
        if segments:
            sizes = ", ".join(str(len(groups.get(name, ()))) for name in segments)
            attributes.setdefault("operandSegmentSizes", f"array<i32: {sizes}>")
        results = self.types.get("result", [])
        if any(t == "=" for name in order for t in self.types.get(name, ())):
            self.types = {n: [results[0] if t == "=" else t for t in ts] for n, ts in self.types.items()}
        inputs = ", ".join(t for name in order for t in self.types.get(name, ()))
        result_types = results[0] if len(results) == 1 else f"({', '.join(results)})"
        function = self.function or f"({inputs}) -> {result_types}"
        entries = (v if n[0] == "\0" else f"{n} = {v}" if v else n for n, v in attributes.items())
        held = " ".join(", ".join(entries).split("\n"))
        held = f" {{{held}}}" if held else ""
        lines = self._lines()
        if not self.regions:
            return f'"{self.op}"({", ".join(values)}){held} : {function}' + "\n" * lines
        before = "\n" * self.lines_before_region
        regions = ", ".join(f"{{{region}}}" for region in self.regions)
        after = "\n" * (lines - self.lines_before_region - regions.count("\n"))
        return f'"{self.op}"({", ".join(values)}){before} ({regions}){held} : {function}{after}'


def _attributes(elements: tuple[Element, ...]) -> Iterator[str]:
    """The attributes that a format names."""
    for element in elements:
        if element.kind in ("attribute", "mixed"):
            yield element.name
        yield from _attributes(element.inner)


def _element(type_: str) -> str:
    """The type of the elements of a tensor or a buffer; another type is its own."""
    match = re.fullmatch(r"(?s)(?:tensor|memref)<(?:(?:\d+|\?|\[\d+\])\s*x\s*)*(.*)>", type_)
    if match is None:
        return type_
    cursor = Cursor(match[1])
    return cursor.type()


def _in_full(match: re.Match[str], keywords: dict[str, str], dialect: str) -> str:
    kind, word = keywords.get(match[1]), match[3]
    return f"{match[1]}{match[2]}#{dialect}.{kind}<{word}>" if kind and word not in _WORDS else match[0]


_READERS: dict[str, Callable[[_Reading, Element], None]] = {
    "sign": _Reading.sign,
    "word": _Reading.word,
    "symbol": _Reading.symbol,
    "operand": _Reading.operand,
    "operands": _Reading.several,
    "optional": _Reading.optional,
    "attribute": _Reading.attribute,
    "mixed": _Reading.mixed,
    "attrs": _Reading.attrs,
    "type": _Reading.type,
    "types": _Reading.several_types,
    "function": _Reading.function_type,
    "results": _Reading.results,
    "region": _Reading.read_region,
    "bound": _Reading.read_bound,
    "short": _Reading.read_short,
    "body": _Reading.read_body,
}
