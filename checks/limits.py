"""Limits for the chosen program: bytes moved, time, memory, and collectives that a saved run does not
have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..program.elements import bytes_text
from ..program.mlir.origins import at
from ..runs.choice import ProgramChoice
from ..runs.table import plural, time_text
from ..session import Session
from .findings import Finding

if TYPE_CHECKING:
    from ..runs.collectives import Collective

_NAMED_AT_MOST = 20  # collectives, ops or tensors that are named
_TIME = re.compile(r"(\d+(?:\.\d*)?|\.\d+) ?(us|ms|s|)", re.ASCII)
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0}


def time_in(text: str) -> float | None:
    """The seconds that a time such as ``1.5ms``, ``20us`` or ``2`` says; None where it says none."""
    match = _TIME.fullmatch(text.strip())
    return float(match[1]) * _UNITS[match[2]] if match else None


def count_in(text: str) -> int | None:
    """A whole number; None where it is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def collectives(session: Session, most: int, choice: ProgramChoice) -> Iterator[Finding]:
    """Too many collectives."""
    listed = session.programs.asked(choice).collectives
    if len(listed) > most:
        total = sum(each.total for each in listed)
        sentence = f"the limit is {most:,}; most bytes first:"
        yield Finding(
            "collectives", plural(len(listed), "collective"), "", "", total, sentence, _listed(listed)
        )


def sent(session: Session, most: int, choice: ProgramChoice) -> Iterator[Finding]:
    """Too many bytes that a device sends."""
    listed = session.programs.asked(choice).collectives
    total = sum(each.total for each in listed)
    if total > most:
        sentence = f"the limit is {bytes_text(most)}; most bytes first:"
        yield Finding(
            "sent", f"{total:,} bytes sent by each device", "", "", total, sentence, _listed(listed)
        )


def memory(session: Session, most: int, choice: ProgramChoice) -> Iterator[Finding]:
    """Too much memory that a device needs."""
    cost = session.cost(**choice.options)
    if cost.peak > most:
        named = (
            f"{bytes_text(h.bytes)}: {h.count:,} of {h.what}{at(h.where, h.stack)}"
            for h in cost.held[:_NAMED_AT_MOST]
        )
        title = f"{bytes_text(cost.peak)} of memory on a device ({cost.machine.name})"
        sentence = f"the limit is {bytes_text(most)}; held at the peak:"
        yield Finding("memory", title, "", "", cost.peak, sentence, tuple(named))


def time(session: Session, most: float, choice: ProgramChoice) -> Iterator[Finding]:
    """Too long a time on the machine."""
    cost = session.cost(**choice.options)
    if cost.seconds > most:
        items = sorted(cost.items, key=lambda item: -item.seconds)[:_NAMED_AT_MOST]
        named = (
            f"{time_text(i.seconds)}: {i.op}{f' for {i.serves}' if i.serves else ''}{at(i.where, i.stack)}"
            f"{_because(i.causes)}"
            for i in items
        )
        sentence = f"the limit is {time_text(most)}; longest first:"
        title = f"{time_text(cost.seconds)} on {cost.machine.name}"
        yield Finding("time", title, "", "", round(cost.sent), sentence, tuple(named))


def new_collectives(session: Session, before: Session, choice: ProgramChoice) -> Iterator[Finding]:
    """The collectives of the program that another run's program lacks, most bytes first."""
    for each in changed_collectives(session, before, choice)[0]:
        yield new_collective(each, "the saved run")


def new_collective(each: Collective, before: str) -> Finding:
    """The finding of a collective that the program called ``before`` lacks."""
    sentence = f"{each.total:,} bytes for {each.slot} of {each.op}; {before} has no such collective"
    title = f"{each.kind} {each.number} of {each.value or 'a value'}"
    because = tuple(f"because of {cause}" for cause in each.causes)
    return Finding("new-collective", title, each.where, each.stack, each.total, sentence, because)


def changed_collectives(
    session: Session, before: Session, choice: ProgramChoice
) -> tuple[list[Collective], list[Collective]]:
    """The collectives that only the program of ``session`` has, and those that only the program of ``before``
    has, most bytes first. Collectives are the same if they have one kind and one set of axes, and serve the
    same slot of such an op, on whatever line."""
    after = list(session.programs.asked(choice).collectives)
    earlier = list(before.programs.asked(choice).collectives)
    keys: tuple[Callable[[Collective], Any], ...] = (
        lambda c: (*_kind(c), c.where, c.value, c.total),
        lambda c: (*_kind(c), c.total),
        _kind,
    )
    for key in keys:
        after, earlier = _without(after, earlier, key), _without(earlier, after, key)
    new, gone = (sorted(some, key=lambda c: (-c.total, c.number)) for some in (after, earlier))
    return new, gone


def _kind(each: Collective) -> tuple[Any, ...]:
    return each.kind, each.axes, each.op, each.slot


def _without(
    some: list[Collective], others: Sequence[Collective], key: Callable[[Collective], Any]
) -> list[Collective]:
    """The surplus over ``others``, key by key: the last ones of each key."""
    left, kept = Counter(map(key, others)), []
    for each in some:
        if left[key(each)]:
            left[key(each)] -= 1
        else:
            kept.append(each)
    return kept


def _listed(collectives: Sequence[Collective]) -> tuple[str, ...]:
    """The collectives that send most, each with its purpose and the annotations behind it."""
    order = sorted(collectives, key=lambda c: (-c.total, c.number))
    lines = [
        f"{c.total:,} bytes: {c.kind} {c.number} of {c.value or 'a value'} for {c.slot} of {c.op}"
        f"{at(c.where, c.stack)}{_because(c.causes)}"
        for c in order[:_NAMED_AT_MOST]
    ]
    more = len(order) - len(lines)
    return (*lines, f"and {more:,} more") if more else tuple(lines)


def _because(causes: Sequence[str]) -> str:
    return f", because of {' and '.join(causes)}" if causes else ""
