"""Lists of op priorities: a line per level, in the order in which ops propagate.

    // Comments and blank lines are skipped; an indented line continues the one before it.
    elementwise, stablehlo.reshape: both
    stablehlo.dot_general pass_through: both
    stablehlo.broadcast_in_dim: none; my.*, @my_call: forward; *: both

A level has groups, with ``;`` between them: the ops, a colon, and the direction in which shardings flow.
Ops are named, or given by the beginning of their names and ``*``, or by a family; a kind of factors or
``single_use`` may follow. ``rules/propagation/op_priorities.dl`` has the meaning.

``compile_priorities`` turns each entry into a fact on the same line, so that places match the file.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...engine.language.sources import line_and_column, line_starts
from ...errors import ShardlogError, closest
from ...program.factors import KINDS
from ...program.signature import text_of

FAMILIES = ("elementwise", "passing", "broadcast")
DIRECTIONS = ("forward", "backward", "both", "none")
_MOST_UNKNOWN = 20  # messages about entries for ops that are not there
_SINGLE_USE = "single_use"
_TOKEN = re.compile(r'//.*|\s+|([:;,]|@?(?:"[^"\\\n]+"|[\w$.\-]+\*?)|@?\*)')


@dataclass(frozen=True)
class Entry:
    """One entry of a level. ``ops``, ``kind``, ``uses`` and ``direction`` are as in
    ``rules/propagation/op_priorities.dl``; ``place`` is ``file:line:column``."""

    place: str
    line: int
    level: int
    ops: str
    kind: str
    uses: str
    direction: str


def parse_priorities(file: str, text: str) -> list[Entry]:
    """The entries in ``text``, level by level. Raises ShardlogError with the place of the first error."""
    parser = _PrioritiesParser(file, text)
    entries = [e for number, level in enumerate(parser.levels) for e in parser.level(number, level)]
    if not entries:
        raise ShardlogError("there are no levels", where=file, hint="a level is a line such as *: both")
    return entries


def compile_priorities(file: str, text: str) -> str:
    """The Datalog text of the entries in ``text``, line by line."""
    lines: list[list[str]] = [[] for _ in text.split("\n")]
    for i, e in enumerate(parse_priorities(file, text)):
        columns = f'{e.level}, {i}, "{e.ops}", "{e.kind}", "{e.uses}", "{e.direction}"'
        lines[e.line - 1].append(f"listed_priority({columns}).")
    return "\n".join(map("".join, lines))


def unknown_names(entries: Iterable[Entry], ruled: Iterable[str], ops: Iterable[Any]) -> Iterator[str]:
    """A message for each entry about ops of which neither the rules (which name the ``ruled`` ones) nor a
    module (with these ``ops``) has one. None stands for ops that are not in the module."""
    names = sorted({*ruled}.union(*(_called(op) for op in ops if op is not None)))
    unknown = [e for e in entries if e.ops not in FAMILIES and not _has(names, e.ops)]
    for entry in unknown[:_MOST_UNKNOWN]:
        called = f"begins with {entry.ops[:-1]}" if entry.ops.endswith("*") else f"is called {entry.ops}"
        hint = closest(entry.ops, names)
        near = f"; {hint}" if hint.startswith("did") else ""
        yield f"{entry.place}: no op in the module or in the rules {called}{near}"
    if len(unknown) > _MOST_UNKNOWN:
        more = unknown[_MOST_UNKNOWN:]
        yield f"{more[0].place}: {len(more):,} more entries are about ops that are not there"


def _has(names: Sequence[str], ops: str) -> bool:
    """Whether one of the sorted ``names`` is meant by ``ops``, a name or the beginning of one and ``*``."""
    name = ops.removesuffix("*")
    i = bisect_left(names, name)
    return i < len(names) and (names[i].startswith(name) if ops.endswith("*") else names[i] == name)


def _called(op: Any) -> Iterator[str]:
    yield op.operation.name
    if "call_target_name" in op.attributes:
        yield f"@{text_of(op.attributes['call_target_name'])}"


class _PrioritiesParser:
    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        # The tokens of each level with their offsets; "" is its end.
        self.levels: list[list[tuple[str, int]]] = []
        self.starts = line_starts(text)
        offset = 0
        for line in text.split("\n"):
            line_tokens = list(self.tokenize(offset, offset + len(line)))
            if line_tokens and not line[0].isspace():
                self.levels.append(line_tokens)
            elif line_tokens and not self.levels:
                hint = "begin a level in the first column; indented lines continue the one before"
                raise self.error(line_tokens[0][1], "this line has no level to continue", hint)
            elif line_tokens:
                self.levels[-1] += line_tokens
            offset += len(line) + 1
        for tokens in self.levels:
            last, at = tokens[-1]
            tokens.append(("", at + len(last)))

    def tokenize(self, at: int, end: int) -> Iterator[tuple[str, int]]:
        while at < end:
            match = _TOKEN.match(self.text, at, end)
            if match is None:
                hint = "ops are named as in stablehlo.add, my.*, @target or *"
                raise self.error(at, f"unexpected character {self.text[at]!r}", hint)
            if match[1]:
                yield match[1], at
            at = match.end()

    @property
    def token(self) -> tuple[str, int]:
        return self.tokens[self.at]

    def take(self) -> tuple[str, int]:
        self.at += 1
        return self.tokens[self.at - 1]

    def level(self, number: int, tokens: list[tuple[str, int]]) -> Iterator[Entry]:
        self.tokens, self.at = tokens, 0
        while True:
            yield from self.group(number)
            token, at = self.token
            if not token:
                return
            if token != ";":
                hint = "as in stablehlo.add: both; my.*: forward"
                raise self.error(at, f"expected ; or the end of the level, found {token}", hint)
            self.take()

    def group(self, level: int) -> list[Entry]:
        subjects = [self.subject()]
        while self.token[0] == ",":
            self.take()
            subjects.append(self.subject())
        token, at = self.token
        if token != ":":
            problem = token or "the end of the level"
            raise self.error(at, f"expected : and a direction, found {problem}", "as in stablehlo.add: both")
        self.take()
        direction, at = self.token
        if direction not in DIRECTIONS:
            problem = f"unknown direction {direction}" if direction else "expected a direction"
            raise self.error(at, problem, closest(direction, DIRECTIONS))
        self.take()
        return [
            Entry(self.place(at), self.position(at)[0], level, ops, kind, uses, direction)
            for ops, kind, uses, at in subjects
        ]

    def subject(self) -> tuple[str, str, str, int]:
        """Ops, the kind of factors, uses, and where they stand."""
        ops, start = self.token
        if ops in ("", ":", ";", ","):
            raise self.error(start, "expected ops", "name ops, as in stablehlo.add, my.*, elementwise or *")
        self.take()
        ops = ops.replace('"', "")
        if ops not in FAMILIES and "." not in ops and ops[0] != "@" and ops[-1] != "*":
            hint = closest(ops, FAMILIES)
            if not hint.startswith("did"):
                hint = f"families are {', '.join(FAMILIES)}; ops have a dot: dialect.op"
            raise self.error(start, f"unknown family {ops}", hint)
        kind = uses = "any"
        while (token := self.token[0]) not in ("", ":", ";", ","):
            if token in KINDS and kind == "any":
                kind = token
            elif token == _SINGLE_USE and uses == "any":
                uses = "single"
            else:
                message = f"expected a kind of factors, {_SINGLE_USE} or :, found {token}"
                raise self.error(self.token[1], message, closest(token, (*KINDS, _SINGLE_USE)))
            self.take()
        return ops, kind, uses, start

    def place(self, at: int) -> str:
        line, column = self.position(at)
        return f"{self.file}:{line}:{column}"

    def position(self, at: int) -> tuple[int, int]:
        """The line and the column of an offset."""
        return line_and_column(self.starts, at)

    def error(self, at: int, message: str, hint: str) -> ShardlogError:
        return ShardlogError(message, where=self.place(at), hint=hint)
