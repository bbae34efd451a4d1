"""Schedules of tactics, as text and as Python objects.

    batch: tokens -> data;
    megatron: params.layers.*.up[1], params.layers.*.down[0] -> model;
    zero: params[replicated] -> data, moments -> data

A tactic is PartIR's notion (https://arxiv.org/abs/2401.11202): it shards a few tensors, and this is
propagated before the next one comes. ``docs/tactics.md`` describes the language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn

from ...engine.language.sources import UnreadableError, line_and_column, line_starts, read_text
from ...errors import ShardlogError

# A word has no mark outside of brackets; a comment starts where a word could.
_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
      | (?P<mark>->|[:;,()])
      | (?P<word>(?:[^\s:;,()\[\]'"-]|-(?!>)|\[(?:'[^'\n]*'|"[^"\n]*"|[^\[\]'"\n])*\])+)""",
    re.VERBOSE,
)
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_EXAMPLE = "as in 'batch: tokens -> data; megatron: params.*.up[1] -> model'"


@dataclass(frozen=True)
class Tactic:
    """A step of a schedule: patterns of arguments or results, each with the mesh axis or axes that they get.

    ``Tactic("megatron", {"params.layers.*.up[1]": "model", "tokens[0]": ("data", "fsdp")})``
    """

    name: str
    shards: Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class TacticRule:
    """``pattern -> axes``, and where it stands."""

    pattern: str
    axes: tuple[str, ...]
    where: str


@dataclass(frozen=True)
class ReadTactic:
    """A tactic as it was read."""

    name: str
    rules: tuple[TacticRule, ...]


def read_schedule(schedule: str | Path | Sequence[Tactic | ReadTactic]) -> tuple[ReadTactic, ...]:
    """The steps of a schedule: text, the name of a file with it, tactics, or such steps.

    Raises ShardlogError with line and column where the text is not a schedule.
    """
    if isinstance(schedule, str | Path):
        steps = _TacticReader(*_source(schedule)).steps()
    else:
        steps = tuple(step for tactic in schedule for step in _read(tactic))
    names = [step.name for step in steps]
    for name in names:
        if names.count(name) > 1:
            hint = "give every tactic a name of its own"
            raise ShardlogError(f"there are two tactics {name}", where="schedule", hint=hint)
    return steps


def schedule_text(steps: Iterable[ReadTactic]) -> str:
    """Steps as the text that is read as these steps."""
    return "; ".join(_text(step.name, [(rule.pattern, rule.axes) for rule in step.rules]) for step in steps)


def _text(name: str, rules: Iterable[tuple[str, Iterable[str]]]) -> str:
    return f"{name}: " + ", ".join(f"{pattern} -> ({', '.join(axes)})" for pattern, axes in rules)


def _source(schedule: str | Path) -> tuple[str, str]:
    """A name for error messages, and the text."""
    if isinstance(schedule, str) and (":" in schedule or "->" in schedule or not schedule.strip()):
        return "schedule", schedule
    try:
        return str(schedule), read_text(Path(schedule))
    except UnreadableError as error:
        hint = f"expected a file with tactics, or tactics, {_EXAMPLE}"
        raise ShardlogError(f"cannot read the schedule: {error}", where=str(schedule), hint=hint) from error


def _read(tactic: Tactic | ReadTactic) -> tuple[ReadTactic, ...]:
    if isinstance(tactic, ReadTactic):
        return (tactic,)
    shards = {p: (axes,) if isinstance(axes, str) else tuple(axes) for p, axes in tactic.shards.items()}
    return _TacticReader(f"tactic {tactic.name}", _text(tactic.name, shards.items())).steps()


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


class _TacticReader:
    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self.tokens = list(self.scan())
        self.next = 0

    def scan(self) -> list[_Token]:
        tokens, end = [], 0
        while match := _TOKEN.match(self.text, end):
            if match.lastgroup != "space":
                tokens.append(_Token(str(match.lastgroup), match[0], end))
            end = match.end()
        if end < len(self.text):
            self.fail(f"unexpected {self.text[end]}", end, "brackets and quotes come in pairs")
        return [*tokens, _Token("end", "", len(self.text.rstrip()))]

    def steps(self) -> tuple[ReadTactic, ...]:
        steps: list[ReadTactic] = []
        while self.tokens[self.next].kind != "end":
            if steps:
                self.take("mark", ";", "another rule after a comma, or another tactic after ;")
            if self.tokens[self.next].kind != "end":
                steps.append(self.step())
        if not steps:
            self.fail("a schedule without tactics", 0, f"expected tactics, {_EXAMPLE}")
        return tuple(steps)

    def step(self) -> ReadTactic:
        name = self.take("word", "", "a tactic starts with its name and a colon")
        if not _NAME.fullmatch(name.text):
            self.fail(f"{name.text} is not the name of a tactic", name.start, "expected a word")
        self.take("mark", ":", f"a tactic starts with its name and a colon, {_EXAMPLE}")
        rules = self.rules()
        while self.accept(","):
            rules += self.rules()
        return ReadTactic(name.text, tuple(rules))

    def rules(self) -> list[TacticRule]:
        """Patterns, an arrow, and the axis or axes that all of them get."""
        hint = "expected arguments and an axis, as in params.*.up[1] -> model"
        patterns = [self.take("word", "", hint)]
        while self.accept(","):
            patterns.append(self.take("word", "", hint))
        several = "put several axes in parentheses, major to minor, as in tokens[0] -> (data, fsdp)"
        self.take("mark", "->", f"{hint}; {several}")
        if self.accept("("):
            axes = [self.take("word", "", several)]
            while self.accept(","):
                axes.append(self.take("word", "", several))
            self.take("mark", ")", several)
        else:
            axes = [self.take("word", "", "expected the name of an axis")]
        names = tuple(axis.text for axis in axes)
        return [TacticRule(pattern.text, names, self.place(pattern.start)) for pattern in patterns]

    def accept(self, mark: str) -> bool:
        token = self.tokens[self.next]
        matches = token.kind == "mark" and token.text == mark
        self.next += matches
        return matches

    def take(self, kind: str, text: str, hint: str) -> _Token:
        token = self.tokens[self.next]
        if token.kind != kind or (text and token.text != text):
            expected = text or "a name"
            self.fail(f"expected {expected}, found {token.text or 'the end'}", token.start, hint)
        self.next += 1
        return token

    def fail(self, message: str, start: int, hint: str) -> NoReturn:
        raise ShardlogError(message, where=self.place(start), hint=hint)

    def place(self, start: int) -> str:
        line, column = line_and_column(line_starts(self.text), start)
        return f"{self.name}:{line}:{column}"
