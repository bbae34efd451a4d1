"""Cases to check: an op with concrete shapes, and what the rules say about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from ..errors import ShardlogError
from ..importers.sources.source import read_source
from ..importers.sources.text import parse_module
from ..program.function import location
from ..program.signature import describe, looks_at
from ..rulebook.book import RuleBook
from ..rulebook.invalid import Invalid
from ..rulebook.notations.einsum import SUFFIXES, EinsumRule, parse_lines, read_text
from ..rulebook.shipped import RULES

Array = npt.NDArray[Any]
Reference = Callable[..., Any]  # of the operands, as NumPy arrays; one result or a sequence of them
Rows = Mapping[str, Sequence[tuple[Any, ...]]]
NONE: Mapping[str, Reference] = {}
EXAMPLES = RULES / "ops/examples.mlir"  # of every op that has a rule
_SAMPLE = 4  # the size of a factor in a sampled shape
_BATCH = 1  # dimensions of an ellipsis there


@dataclass(frozen=True, eq=False)
class Case:
    """An op, as the op rules see it.

    ``facts`` are its signature, ``answers`` are the rules'. ``operation`` is the op where there is one;
    it lives as long as its ``module``. ``reference`` is a function that computes the results, ``invalid`` is
    what is wrong with the rules of a user.
    """

    name: str
    place: str
    facts: Rows
    answers: Rows
    operation: ir.Operation | None = None
    module: ir.Module | None = None
    reference: Reference | None = None
    invalid: tuple[Invalid, ...] = ()

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...] | None, ...]:
        """The shapes of the slots; None where a slot is no ranked tensor."""
        dims: dict[int, list[int]] = {}
        for t, _, size in sorted(self.facts.get("dim", ())):
            dims.setdefault(t, []).append(size)
        slots = sorted(self.facts.get("slot", ()))
        return tuple(tuple(dims.get(t, ())) if rank >= 0 else None for t, _, _, rank in slots)

    @cached_property
    def operands(self) -> int:
        """The number of operands among the slots."""
        return sum(role == "operand" for _, role, _, _ in self.facts.get("slot", ()))

    @cached_property
    def factors(self) -> dict[int, int]:
        """Sizes of the factors."""
        return dict(self.answers["factor"])

    @cached_property
    def kinds(self) -> dict[int, str]:
        """Kinds of the factors, where the rules say one."""
        return dict(self.answers["kind"])

    @cached_property
    def blocked(self) -> frozenset[int]:
        """Factors along which nothing propagates."""
        return frozenset(f for (f,) in self.answers["blocked"])

    @cached_property
    def maps(self) -> dict[tuple[int, int], list[int]]:
        """(slot, dimension) -> its factors, major to minor."""
        maps: dict[tuple[int, int], list[int]] = {}
        for t, d, _, f in sorted(self.answers["maps"]):
            maps.setdefault((t, d), []).append(f)
        return maps

    def slot(self, t: int) -> str:
        """The name of slot ``t``."""
        return f"operand {t}" if t < self.operands else f"result {t - self.operands}"

    def dims(self, f: int) -> list[tuple[int, int]]:
        """The (slot, dimension) pairs in which factor ``f`` occurs."""
        return [place for place, factors in sorted(self.maps.items()) if f in factors]

    def label(self, f: int) -> str:
        """A name for a factor: the dimensions in which it occurs."""
        dims = ", ".join(f"dimension {d} of {self.slot(t)}" for t, d in self.dims(f))
        return f"factor {f} (size {self.factors[f]}: {dims})"


def file_cases(
    source: Any, book: RuleBook, references: Mapping[str, Reference] = NONE, *, lenient: bool = False
) -> list[Case]:
    """The cases of a module in a file, or any other source that ``shardlog.run`` takes.

    Raises ShardlogError where rules say what makes no sense, unless ``lenient``.
    """
    text = read_source(source)
    module = parse_module(text)
    return module_cases(module, book, lambda op: text.line(location(op)), references, lenient=lenient)


def shipped_cases(book: RuleBook) -> list[Case]:
    """The cases of shardlog's own examples; none where this jaxlib is too old to know all of their ops."""
    text = read_source(EXAMPLES)
    try:
        module = parse_module(text)
    except ShardlogError:
        return []
    return module_cases(module, book, lambda op: text.line(location(op)))


def line_cases(
    book: RuleBook, references: Mapping[str, Reference] = NONE, *, lenient: bool = False
) -> list[Case]:
    """The cases of the lines of einsum notation in the files of a book."""
    lines = [
        line
        for path in book.files
        if path.suffix in SUFFIXES
        for line in parse_lines(str(path), read_text(path))
    ]
    return [line_case(line, book, references, lenient=lenient) for line in lines]


def module_cases(
    module: ir.Module,
    book: RuleBook,
    place: Callable[[Any], str],
    references: Mapping[str, Reference] = NONE,
    *,
    lenient: bool = False,
) -> list[Case]:
    """A case for each distinct signature in a module; ``place`` says where an op stands."""
    around = looks_at(book.looks_at)
    cases: dict[Any, Case] = {}
    for op in _walk(module.operation):
        facts = describe(op, False, around)
        key = tuple((name, tuple(rows)) for name, rows in sorted(facts.items()))
        if key not in cases:
            answers = (book.unchecked if lenient else book.classify)(facts)
            name, invalid = _name(facts), book.invalid(facts)
            cases[key] = Case(name, place(op), facts, answers, op, module, references.get(name), invalid)
    return list(cases.values())


def line_case(
    line: EinsumRule, book: RuleBook, references: Mapping[str, Reference] = NONE, *, lenient: bool = False
) -> Case:
    """The case of a line of einsum notation, with small shapes that fit it."""
    sizes = dict(line.sizes)
    rows: dict[str, list[tuple[Any, ...]]] = {"slot": [], "dim": [], "element": []}
    for t, dims in enumerate(line.slots):
        shape: list[int] = []
        for dim in dims:
            ellipsis = dim[0].startswith("...")
            shape += [_SAMPLE] * _BATCH if ellipsis else [prod(sizes.get(f, _SAMPLE) for f in dim)]
        role, i = ("operand", t) if t < len(line.operands) else ("result", t - len(line.operands))
        rows["slot"].append((t, role, i, len(shape)))
        rows["dim"] += [(t, d, size) for d, size in enumerate(shape)]
        rows["element"].append((t, "f32", 32))
    if line.custom_call:
        rows["op"] = [("stablehlo.custom_call",)]
        rows["attribute_symbol"] = [("call_target_name", line.name)]
    else:
        rows["op"] = [(line.name,)]
    name = _name(rows)
    answers = (book.unchecked if lenient else book.classify)(rows)
    return Case(name, line.place, rows, answers, reference=references.get(name), invalid=book.invalid(rows))


def _name(facts: Rows) -> str:
    """The name of an op; of a custom call ``@`` and its target."""
    for attribute, value in facts.get("attribute_symbol", ()):
        if attribute == "call_target_name":
            return f"@{value}"
    return str(facts["op"][0][0])


def _walk(op: Any) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region:
            for inner in block:
                yield inner.operation
                yield from _walk(inner.operation)


def random_operands(case: Case) -> list[Array]:
    """Small random operands, the same for the same case. Raises ValueError for types that NumPy lacks."""
    generator = np.random.default_rng(0)
    types = {t: name for t, name, _ in case.facts.get("element", ())}
    operands = []
    for t in range(case.operands):
        shape = case.shapes[t]
        if shape is None:
            raise ValueError(f"{case.slot(t)} is not a tensor")
        kind = dtype(types[t])
        drawn: Any
        if kind == np.bool_:
            drawn = generator.random(shape) < 0.5
        elif np.issubdtype(kind, np.integer):
            drawn = generator.integers(0, 4, shape)
        elif np.issubdtype(kind, np.complexfloating):
            drawn = generator.random(shape) + 1j * generator.random(shape)
        else:
            drawn = generator.uniform(0.1, 1.0, shape)
            if len(shape) > 1 and shape[-1] == shape[-2]:
                drawn = drawn + shape[-1] * np.eye(shape[-1])  # well-conditioned, where it is a matrix
        operands.append(np.array(drawn, dtype=kind))
    return operands


def dtype(element: str) -> np.dtype[Any]:
    """The NumPy type of an MLIR element type. Raises ValueError where there is none."""
    names = {"i1": "bool", "complex<f32>": "complex64", "complex<f64>": "complex128"}
    for letter, word in (("ui", "uint"), ("i", "int"), ("f", "float")):
        names.update({f"{letter}{bits}": f"{word}{bits}" for bits in (8, 16, 32, 64)})
    names["i1"] = "bool"
    if element not in names:
        raise ValueError(f"no arrays of {element}")
    try:
        return np.dtype(names[element])
    except TypeError:
        raise ValueError(f"no arrays of {element}") from None
