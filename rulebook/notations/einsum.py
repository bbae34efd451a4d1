"""Op rules of one line each, in the notation of Shardy and of JAX's ``custom_partitioning``.

    // Comments and blank lines are skipped; an indented line continues the one before it.
    /// The sentence of the rule, for explanations.
    @flash_attention: b s (g h) d, b t g d, b t g d -> b s (g h) d {h=4} reduction={t} need_replication={d}
    mydialect.softmax: ... i -> ... i need_replication={i}
    elementwise_op("mydialect.gelu").  // facts about names may stand between, as in a .dl file

``@target`` stands for a custom call, any other name for an op. Each operand and result is a list of
dimensions; a dimension is a factor or a product of factors, major to minor; ``...`` (or ``...1``) are any
leading dimensions, nothing is a scalar. Equal names are one factor. ``{h=4}`` gives the sizes that
dimensions do not tell. Factors pass through unless listed as ``reduction``, ``need_replication`` or
``permutation``; along those in ``blocked_propagation`` no sharding propagates. A line holds for ops whose
shapes fit it, so that a name may have a line for each form of its op. It goes before other rules for the op,
and an `sdy.sharding_rule` that is attached to an op before it.

``clauses.py`` makes Datalog of the lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...engine.language.sources import line_and_column, line_starts
from ...errors import ShardlogError, closest
from ...program.factors import MARKED

SUFFIXES = (".rules", ".txt")
_BLOCKED = "blocked_propagation"
FACTS = re.compile(r"(?:\w+\([^()]*\)\.\s*)+(?://.*)?")
NAME = re.compile(r'(@?)(?:"([^"\\\n]+)"|([\w$.\-]+))\s*:')
_TOKEN = re.compile(r"\s+|(->|\.\.\.\d*|[A-Za-z]\w*|\d+|[(){},=])")

Dim = tuple[str, ...]  # the factors of a dimension, major to minor
Shape = tuple[Dim, ...]


@dataclass(frozen=True)
class EinsumRule:
    """A rule as written. An ellipsis is a dimension with the one factor "..." (or "...1")."""

    file: str
    number: int
    text: str
    name: str
    custom_call: bool
    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]
    sizes: dict[str, int]
    kinds: dict[str, str]
    blocked: tuple[str, ...]
    sentence: str

    @property
    def place(self) -> str:
        """The place of the line: ``file:line``."""
        return f"{self.file}:{self.number}"

    @property
    def slots(self) -> tuple[Shape, ...]:
        """Operands, then results."""
        return self.operands + self.results

    @property
    def factors(self) -> tuple[str, ...]:
        """The factors in the order in which they first occur, which is their order for propagation."""
        return tuple(dict.fromkeys(f for shape in self.slots for dim in shape for f in dim))


def refuse_module(file: Path) -> None:
    """Raises ShardlogError for a file of MLIR in the place of rules."""
    if file.suffix in (".mlir", ".mlirbc"):
        hint = "rules are files of Datalog (.dl) or einsum notation (.rules)"
        raise ShardlogError("this is a module, not a rule file", where=str(file), hint=hint)


def read_text(path: Path) -> str:
    """The text of a file. Raises ShardlogError where it cannot be read."""
    from ...engine.language import sources

    try:
        return sources.read_text(path)
    except sources.UnreadableError as error:
        raise ShardlogError(f"cannot read this file: {error}", where=str(path)) from None


def parse_lines(file: str, text: str) -> list[EinsumRule]:
    """The rules in ``text``. Raises ShardlogError with the place of the first error."""
    rules: list[EinsumRule] = []
    sentence: list[str] = []
    lines = text.split("\n")
    read = 0  # the last line that continues a rule
    for number, line in enumerate(lines, 1):
        if FACTS.fullmatch(line):
            continue
        if line.startswith("///"):
            sentence.append(line[3:].strip())
        elif line.strip() and not line.startswith("//") and not line[0].isspace():
            rest = list(_continuations(lines, number))
            read = number + len(rest)
            rules.append(_EinsumParser(file, number, "\n".join([line, *rest])).line(" ".join(sentence)))
            sentence = []
        elif line.strip() and not line.startswith("//") and number > read:
            hint = "begin the rule in the first column; indented lines continue the one before"
            raise ShardlogError("this line has no rule to continue", where=f"{file}:{number}:1", hint=hint)
    _check_distinct(rules)
    return rules


def _continuations(lines: Sequence[str], start: int) -> Iterator[str]:
    for number in range(start, len(lines)):
        line = lines[number]
        if not line.strip() or not line[0].isspace():
            return
        yield line


class _EinsumParser:
    """Reads one rule, which may go over several lines."""

    def __init__(self, file: str, number: int, text: str) -> None:
        self.file, self.number, self.text = file, number, text
        self.tokens: list[tuple[str, int]] = []
        self.at = 0

    def line(self, sentence: str) -> EinsumRule:
        name = NAME.match(self.text)
        if name is None:
            hint = (
                'as in @target: i j -> i j, or dialect.op: i -> i, or a fact: elementwise_op("dialect.op").'
            )
            raise self.error(0, "expected a name and a colon", hint)
        self.tokenize(name.end())
        operands = self.shapes()
        self.expect("->")
        results = self.shapes()
        sizes: dict[str, int] = {}
        kinds: dict[str, str] = {}
        blocked: list[str] = []
        used = {f for shape in operands + results for dim in shape for f in dim}
        while self.token != "end":
            if self.token == "{":
                for _ in self.listed(used, sizes):
                    pass
                continue
            kind, at = self.take()
            if kind not in (*MARKED, _BLOCKED):
                raise self.error(at, f"unknown kind {kind!r}", closest(kind, (*MARKED, _BLOCKED)))
            self.expect("=")
            for factor, where in self.listed(used, None):
                if kind == _BLOCKED:
                    blocked.append(factor)
                elif kinds.setdefault(factor, kind) != kind:
                    message = f"factor {factor} is listed as {kinds[factor]} already"
                    raise self.error(where, message, "a factor has one kind")
        text = " ".join(self.text.split())
        label, custom_call = name[2] or name[3], bool(name[1])
        slots = (operands, results, sizes, kinds, tuple(blocked))
        line = EinsumRule(self.file, self.number, text, label, custom_call, *slots, sentence)
        self.check(line)
        return line

    def check(self, line: EinsumRule) -> None:
        for shape in line.slots:
            names = [f for dim in shape for f in dim]
            for factor in names:
                if names.count(factor) > 1:
                    hint = "a factor shards at most one dimension of a tensor"
                    raise self.error(0, f"factor {factor} is used twice in one operand or result", hint)
        for factor in [f for shape in line.results for dim in shape for f in dim]:
            if line.kinds.get(factor) == "reduction":
                hint = "a reduction is over a factor of operands alone"
                raise self.error(0, f"factor {factor} is reduction, but a result has it", hint)
        derived_sizes(line)

    def tokenize(self, at: int) -> None:
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if match is None:
                arrow = self.text[at] in "-→"
                hint = "the arrow is ->" if arrow else "factors are names such as i, j2, heads"
                raise self.error(at, f"unexpected character {self.text[at]!r}", hint)
            if match[1]:
                self.tokens.append((match[1], at))
            at = match.end()
        self.tokens.append(("end", at))

    @property
    def token(self) -> str:
        return self.tokens[self.at][0]

    def take(self) -> tuple[str, int]:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def expect(self, wanted: str) -> None:
        token, at = self.take()
        if token != wanted:
            raise self.error(at, f"expected {wanted}, found {'the end' if token == 'end' else token}")

    def shapes(self) -> tuple[Shape, ...]:
        """Shapes with commas between them; nothing at all is a scalar."""
        listed = [self.shape()]
        while self.token == ",":
            self.at += 1
            listed.append(self.shape())
        return tuple(listed)

    def shape(self) -> Shape:
        dims: list[Dim] = []
        while True:
            token, at = self.tokens[self.at]
            options = token in (*MARKED, _BLOCKED) and self.tokens[self.at + 1][0] == "="
            if token in (",", "->", "{", "end") or options:
                return tuple(dims)
            self.at += 1
            if self.token == "=":
                raise self.error(at, f"unknown kind {token!r}", closest(token, (*MARKED, _BLOCKED)))
            if token.startswith("...") and dims:
                raise self.error(at, "... means leading dimensions", "write it before the others")
            if token == "(":
                dims.append(self.product(at))
            elif token[0].isalpha() or token.startswith("..."):
                dims.append((token,))
            else:
                hint = "factors are names such as i, j2, heads"
                raise self.error(at, f"expected a factor, found {token}", hint)

    def product(self, at: int) -> Dim:
        factors = []
        while self.token[0].isalpha() and self.token != "end":
            factors.append(self.take()[0])
        self.expect(")")
        if len(factors) < 2:
            raise self.error(at, "expected two factors or more in (...)")
        return tuple(factors)

    def listed(self, used: set[str], sizes: dict[str, int] | None) -> Iterator[tuple[str, int]]:
        """The factors in ``{...}``; with ``sizes`` each is followed by ``=`` and its size."""
        self.expect("{")
        while self.token != "}":
            factor, at = self.take()
            if factor == "end":
                raise self.error(at, "expected }, found the end")
            if factor not in used:
                raise self.error(at, f"no operand or result has a factor {factor}")
            if sizes is not None:
                self.expect("=")
                size, where = self.take()
                if not size.isdigit() or int(size) < 1:
                    raise self.error(where, f"expected a size, found {size}", "as in {h=4}")
                sizes[factor] = int(size)
            yield factor, at
            if self.token == ",":
                self.at += 1
        self.at += 1

    def error(self, at: int, message: str, hint: str = "") -> ShardlogError:
        line, column = line_and_column(line_starts(self.text), at)
        return ShardlogError(message, where=f"{self.file}:{self.number + line - 1}:{column}", hint=hint)


def derived_sizes(line: EinsumRule) -> list[tuple[str, int, int, Dim]]:
    """The sources of the sizes of factors that occur in products only: (factor, slot, dim, the dim's
    factors).

    Raises ShardlogError for a factor whose size cannot be derived.
    """
    sized = {dim[0] for shape in line.slots for dim in shape if len(dim) == 1} | set(line.sizes)
    products = [
        (t, d, dim) for t, shape in enumerate(line.slots) for d, dim in enumerate(shape) if len(dim) > 1
    ]
    derived = []
    while True:
        unknown = [(t, d, dim, [f for f in dim if f not in sized]) for t, d, dim in products]
        step = next(((fs[0], t, d, dim) for t, d, dim, fs in unknown if len(fs) == 1), None)
        if step is None:
            break
        derived.append(step)
        sized.add(step[0])
    missing = [f for f in line.factors if f not in sized]
    if missing:
        message = f"no dimension tells the size of factor {missing[0]}"
        raise ShardlogError(message, where=line.place, hint=f"give sizes: {{{missing[0]}=...}}")
    return derived


def _check_distinct(lines: Sequence[EinsumRule]) -> None:
    """No two lines for one name may hold for the same ranks."""
    forms: dict[tuple[str, bool, int, int], list[EinsumRule]] = {}
    for line in lines:
        alike = forms.setdefault(form(line), [])
        for other in alike:
            if meet(line, other):
                message = f"{line.name} has another rule for these ranks, in line {other.number}"
                raise ShardlogError(message, where=f"{line.place}:1", hint="keep one of the two")
        alike.append(line)


def form(line: EinsumRule) -> tuple[str, bool, int, int]:
    """A key that is equal for lines that may hold for one op."""
    return (line.name, line.custom_call, len(line.operands), len(line.results))


def meet(line: EinsumRule, other: EinsumRule) -> bool:
    """Whether two lines of one form may hold for the same ranks."""
    return all(_overlap(a, b) for a, b in zip(line.slots, other.slots, strict=True))


def _overlap(one: Shape, other: Shape) -> bool:
    """Some rank fits both shapes."""
    if is_open(one) and is_open(other):
        return True
    if is_open(one) or is_open(other):
        short, long = (one, other) if is_open(one) else (other, one)
        return len(short) - 1 <= len(long)
    return len(one) == len(other)


def is_ellipsis(factor: str) -> bool:
    """Whether a factor stands for any leading dimensions."""
    return factor.startswith("...")


def is_open(shape: Shape) -> bool:
    """Whether a shape begins with an ellipsis."""
    return bool(shape) and is_ellipsis(shape[0][0])
