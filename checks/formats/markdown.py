"""A verdict as Markdown: tables of the changes and their causes, for a comment or a summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...explanations.answers.text import dims_text
from ...program.elements import bytes_text
from ...program.mlir.origins import at
from ..verdict import Changes, Problem, Verdict

_MOST_ROWS = 20  # of a table
_MARKS = re.compile(r"[\\`*_\[\]<>#|~@$]")
_LONGEST = 300  # characters of a cell: a comment on GitHub may have 65,536


def written(verdict: Verdict) -> str:
    """A heading, the bytes and the memory of a device before and after, and the problems."""
    mark = "❌" if verdict.errors else "✅"
    lines = [f"### {mark} shardlog: {_cell(verdict.name)}", "", _cell(verdict.program), ""]
    if verdict.changes is not None:
        lines += _changes(verdict.changes)
    shown = [p for p in verdict.problems if verdict.changes is None or p.check != "changed-sharding"]
    lines += _problems(shown)
    if not verdict.problems:
        lines += ["As expected.", ""]
    return "\n".join(lines)


def _changes(changes: Changes) -> Iterator[str]:
    before, after = changes.before, changes.after
    yield from _table(
        ("of each device", _cell(changes.baseline), "now"),
        [
            ("collectives", f"{before.collectives:,}", f"{after.collectives:,}"),
            ("bytes sent", f"{before.sent:,}", f"{after.sent:,}"),
            ("memory", bytes_text(before.memory), bytes_text(after.memory)),
        ],
    )
    if changes.gone:
        rows = [
            (c.kind, ", ".join(c.axes), f"{c.total:,}", f"{c.slot} of {c.op}{at(c.where, c.stack)}")
            for c in changes.gone
        ]
        yield from _table(("no longer there", "axes", "bytes", "for"), rows)
    if tensors := changes.diff.tensors:
        why: dict[str, list[str]] = {}
        for parting in changes.diff.partings:
            reason = parting.why if parting.has == 2 else f'no longer "{parting.axis}": {parting.why_not}'
            for value, dim in parting.dims:
                source = "" if value == parting.site.value else f"as {parting.site.value} is: "
                why.setdefault(value, []).append(f"dim {dim}: {source}{reason}")
        rows = [
            (
                f"{t.other}{at(t.other_where, t.other_stack)}",
                dims_text(t.first),
                dims_text(t.second),
                "; ".join(dict.fromkeys(why.get(t.value, ()))),
            )
            for t in tensors
        ]
        yield from _table(("sharded otherwise", "before", "now", "why"), rows)


def _problems(problems: Sequence[Problem]) -> Iterator[str]:
    rows = [
        (p.check, f"{p.what}{at(p.where, p.stack)}", "\n".join((p.sentence, *p.because))) for p in problems
    ]
    if rows:
        yield from _table(("check", "what", "why"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from (_row(map(_cell, row)) for row in rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        yield _row([f"and {len(rows) - _MOST_ROWS:,} more", *[""] * (len(head) - 1)])
    yield ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Literal text for a cell of a table, whose lines are apart: markup in it is escaped. Places are as seen
    from the working folder."""
    text = text.replace(f"{Path.cwd()}/", "")
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
    return "<br>".join(" ".join(_MARKS.sub(_as_text, line).split()) for line in short.splitlines())


def _as_text(match: re.Match[str]) -> str:
    mark = match[0]
    return f"&#{ord(mark)};" if mark in "<>@" else f"\\{mark}"
