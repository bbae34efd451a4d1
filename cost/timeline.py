"""When a device computes and sends during a step: each op and collective with its begin, and Chrome's trace.

Ops are in the order of the program. As in ``Cost.seconds``, they follow one another. Only a collective that
overlaps with products begins or ends with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..program.folding import scope
from ..program.mlir.origins import Origin

COMPUTE = "compute"
MOST_EVENTS = 100_000  # beyond which the turns of loops are one event
_MICRO = 1e6  # microseconds in a second


class Work(NamedTuple):
    """An op or a collective of a device, and one execution of it: its seconds, operations, and bytes (read
    and written, or sent).

    It comes from ``origin``: ``where`` is the line and ``stack`` the name stack. ``axes`` are the axes of a
    collective; ops have none. For ``hidden`` seconds more, a collective overlaps with products, which come
    after it if it ``leads``. ``number`` is the number of a collective, and ``serves`` the op that it serves.
    """

    op: str
    origin: Origin
    where: str
    stack: str
    seconds: float
    flops: float
    bytes: float
    limited: str
    axes: tuple[str, ...] = ()
    hidden: float = 0.0
    leads: bool = False
    number: int | None = None
    serves: str = ""

    @property
    def layer(self) -> tuple[str, ...]:
        """The scope that it comes from, outermost first."""
        return scope(self.origin)

    @property
    def track(self) -> str:
        """What is busy with it: "compute", or the links of its axes."""
        return f"links of {', '.join(sorted(self.axes))}" if self.axes else COMPUTE


@dataclass
class Turns:
    """The work of a turn of a loop and of its test, and how often each runs."""

    turns: int
    tests: int
    test: list[Done] = field(default_factory=list)
    body: list[Done] = field(default_factory=list)

    @property
    def runs(self) -> Iterator[tuple[list[Done], int]]:
        """Its two parts, and how often each runs."""
        yield self.test, self.tests
        yield self.body, self.turns


class Done(NamedTuple):
    """Work in the order of the program, or a loop; and how often ``work`` runs here."""

    work: Work | Turns
    times: int = 1


class Around(NamedTuple):
    """A loop around an op, by its number, how often its body and its test run, and whether the op is in the
    test."""

    loop: int
    turns: int
    tests: int
    testing: bool


class TimelineEvent(NamedTuple):
    """Work from ``begin`` on, for ``seconds``. It may be several executions, one after the other."""

    work: Work
    begin: float
    seconds: float
    times: int


class Timeline:
    """The work of a device in a step, in the order of the program."""

    def __init__(self) -> None:
        self.done: list[Done] = []
        self._loops: dict[int, Turns] = {}

    def add(self, work: Work, times: int, around: Sequence[Around]) -> None:
        """Adds work that runs so often in all, in loops, the outermost first. What is the same in each turn
        of a loop runs before it."""
        if not times or work.seconds + work.hidden <= 0:
            return
        place, runs, inside = self.done, 1, False
        for loop, turns, tests, testing in around:
            inside = loop in self._loops
            if runs == times:
                break
            if not inside:
                self._loops[loop] = Turns(turns, tests)
                place.append(Done(self._loops[loop]))
            place = self._loops[loop].test if testing else self._loops[loop].body
            runs, inside = runs * (tests if testing else turns), False
        place.insert(len(place) - inside, Done(work, times // runs))

    @property
    def events(self) -> Iterator[TimelineEvent]:
        """The work with its begin. Turns of loops follow each other, where that makes no more than
        ``MOST_EVENTS``; otherwise an op of a loop is one event for all turns."""
        each_turn = _count(self.done) <= MOST_EVENTS
        now = 0.0
        for work, times in _in_order(self.done, each_turn):
            seconds, hidden = work.seconds * times, work.hidden * times
            yield TimelineEvent(work, now if work.leads else max(now - hidden, 0.0), seconds + hidden, times)
            now += seconds

    def trace(self, about: dict[str, Any]) -> dict[str, Any]:
        """The events in Chrome's trace event format, which Perfetto reads: a track for computing, and one for
        the links of each set of axes. ``about`` are further entries of the file.

        The format: "Trace Event Format", by the authors of Chrome's trace viewer.
        """
        events = list(self.events)
        tracks = {COMPUTE: 0}
        for event in events:
            tracks.setdefault(event.work.track, len(tracks))
        rows: list[dict[str, Any]] = [_named("process_name", 0, "a device")]
        rows += [_named("thread_name", number, track) for track, number in tracks.items()]
        rows += [_sorted(number) for number in tracks.values()]
        rows += [_row(event, seconds, tracks) for event, seconds in _apart(events)]
        return {"displayTimeUnit": "ns", "otherData": about, "traceEvents": rows}


def _count(done: Sequence[Done]) -> int:
    """How many events there are if each turn of a loop has its own."""
    return sum(
        sum(often * _count(part) for part, often in work.runs) if isinstance(work, Turns) else 1
        for work, _ in done
    )


def _in_order(done: Sequence[Done], each_turn: bool, often: int = 1) -> Iterator[tuple[Work, int]]:
    """Work as it is carried out, and how many executions at once."""
    for work, times in done:
        if not isinstance(work, Turns):
            yield work, times * often
        elif not each_turn:
            for part, more in work.runs:
                yield from _in_order(part, each_turn, often * more)
        else:
            for turn in range(max(work.turns, work.tests)):
                yield from _in_order(work.test, each_turn) if turn < work.tests else ()
                yield from _in_order(work.body, each_turn) if turn < work.turns else ()


def _apart(events: Sequence[TimelineEvent]) -> Iterator[tuple[TimelineEvent, float]]:
    """Events with their seconds, which end before the next one on the same track begins."""
    following: dict[str, float] = {}
    bounded = []
    for event in reversed(events):
        until = following.get(event.work.track, float("inf"))
        bounded.append((event, min(event.seconds, max(until - event.begin, 0.0))))
        following[event.work.track] = event.begin
    return reversed(bounded)


def _row(event: TimelineEvent, seconds: float, tracks: dict[str, int]) -> dict[str, Any]:
    work = event.work
    about = {
        "op": work.serves or work.op,
        "layer": "/".join(work.layer),
        "stack": work.stack,
        "place": work.where,
        "bytes": work.bytes * event.times,
        "operations": work.flops * event.times,
        "times": event.times,
        "limited by": work.limited,
        "collective": work.number,
        "hidden": work.hidden * event.times * _MICRO or None,  # microseconds, behind products
    }
    return {
        "ph": "X",
        "pid": 0,
        "tid": tracks[work.track],
        "name": work.op,
        "cat": work.limited,
        "ts": event.begin * _MICRO,
        "dur": seconds * _MICRO,
        "args": {name: value for name, value in about.items() if value not in ("", None)},
    }


def _named(kind: str, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 0, "tid": track, "name": kind, "args": {"name": name}}


def _sorted(track: int) -> dict[str, Any]:
    return {"ph": "M", "pid": 0, "tid": track, "name": "thread_sort_index", "args": {"sort_index": track}}
