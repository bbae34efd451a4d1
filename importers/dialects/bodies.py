"""The regions of named ops of linalg: the function of one element of each operand.

See ``rules/dialects/bodies.dl``.
"""

from __future__ import annotations

import re
from functools import cache

from ...rulebook.shipped import shipped

_TOKEN = re.compile(r"\w+|[(),]")
_FLOAT = re.compile(r"bf16|tf32|f\d+\w*")
_INTEGER = re.compile(r"[su]?i\d+|index")


class BodyRules:
    """The rules for bodies."""

    def __init__(self) -> None:
        rows = shipped("dialects/statements").evaluate({})
        self.terms: dict[str, str] = dict(rows["body"])
        self.named: dict[str, tuple[str, str]] = {op: (label, other) for op, label, other in rows["body_by"]}
        self.functions: dict[tuple[str, str], str] = {(name, kind): op for name, kind, op in rows["function"]}
        self.conversions: dict[tuple[str, str], tuple[str, str]] = {
            (before, after): (wider, narrower) for before, after, wider, narrower in rows["conversion"]
        }

    def term(self, op: str, inputs: int, attributes: dict[str, str]) -> str | None:
        """The term of an op, which attributes may name."""
        if op not in self.named:
            return self.terms.get(op)
        label, word = self.named[op]
        if match := re.search(rf"\b{label}\s*=\s*#[\w.]*<\s*(\w+)\s*>", attributes_text(attributes)):
            word = match[1]
        operands = ", ".join(f"i{i}" for i in range(inputs))
        return self.terms.get(f"linalg.{word}", f"{word}({operands})")


def attributes_text(attributes: dict[str, str]) -> str:
    """All attributes as one text. A dictionary is one entry."""
    return ", ".join(f"{label} = {value}" for label, value in attributes.items())


@cache
def bodies() -> BodyRules:
    """The rules for bodies, read once."""
    return BodyRules()


def body(
    op: str, inputs: list[str], outputs: list[str], attributes: dict[str, str], between: str = " "
) -> str | None:
    """The region of an op whose operands have elements of these types, with some space ``between`` its
    statements; None where it has none by its name."""
    term = bodies().term(op, len(inputs), attributes)
    if term is None or len(outputs) != 1:
        return None
    return _ScalarBody(inputs, outputs, unsigned="cast_unsigned" in attributes_text(attributes)).of(
        term, between
    )


class _ScalarBody:
    """A region that is being written."""

    def __init__(self, inputs: list[str], outputs: list[str], *, unsigned: bool) -> None:
        self.suffix = " unsigned" if unsigned else ""  # of kinds that have ops of their own then
        self.types = {f"i{i}": t for i, t in enumerate(inputs)} | {f"o{i}": t for i, t in enumerate(outputs)}
        (self.result,) = outputs
        self.lines = list[str]()

    def of(self, term: str, between: str) -> str | None:
        """The region; None if there is no op for the function."""
        arguments = ", ".join(f"%{name}_: {type_}" for name, type_ in self.types.items())
        value = self.read(_TOKEN.findall(term))
        if value is None:
            return None
        self.lines.append(f'"linalg.yield"({value}) : ({self.result}) -> ()')
        return between.join((f"^bb0({arguments}):", *self.lines)) + " "

    def read(self, tokens: list[str]) -> str | None:
        """The value of the term that tokens begin with, which are taken off."""
        name = tokens.pop(0)
        if tokens[:1] != ["("]:
            return self.converted(name)
        tokens.pop(0)
        operands, condition = list[str | None](), ""
        while tokens[0] != ")":
            if tokens[0] == ",":
                tokens.pop(0)
            elif name == "select" and not operands:
                condition = f"%{tokens.pop(0)}_"
                operands.append(condition)
            else:
                operands.append(self.read(tokens))
        tokens.pop(0)
        op = bodies().functions.get((name, _kind(self.result)))
        if op is None or None in operands:
            return None
        texts = ", ".join(map(str, operands))
        return self.add(f"{op} {texts} : {self.result}")

    def converted(self, name: str) -> str | None:
        """An element of an operand, or the number 1, with the type of the result."""
        if name == "1":
            number = "1" if _kind(self.result) == "integer" else "1.0"
            return self.add(f"arith.constant {number} : {self.result}")
        before, after = self.types[name], self.result
        if before == after:
            return f"%{name}_"
        conversions, kinds = bodies().conversions, (_kind(before), _kind(after))
        ops = conversions.get((f"{kinds[0]}{self.suffix}", kinds[1]), conversions.get(kinds))
        if ops is None:
            return None
        return self.add(f"{ops[_bits(before) > _bits(after)]} %{name}_ : {before} to {after}")

    def add(self, line: str) -> str:
        """Adds an op; returns its value."""
        name = f"%v{len(self.lines)}_"
        self.lines.append(f"{name} = {line}")
        return name


def _kind(type_: str) -> str:
    """The kind of elements of a type, as the rules call them."""
    if type_ == "i1":
        return "boolean"
    if type_.startswith("complex"):
        return "complex"
    return "float" if _FLOAT.fullmatch(type_) else "integer" if _INTEGER.fullmatch(type_) else ""


def _bits(type_: str) -> int:
    match = re.search(r"\d+", type_)
    return int(match[0]) if match else 64
