"""The rules of a module's ops, and the ops without one."""

from __future__ import annotations

from collections.abc import Sequence

from ..rulebook.book import RuleBook
from ..runs.table import table
from .case import Case, file_cases
from .origin import Origins
from .show import summary

Row = tuple[str, int, str, str]


def module_ops(source: object, book: RuleBook) -> list[Row]:
    """(op, how many signatures it has, place of its rule, what the rule says about one of them), by name.

    Ops without a rule come last, and their place is "-".
    """
    origins = Origins(book)
    by_name: dict[str, list[Case]] = {}
    for case in file_cases(source, book):
        by_name.setdefault(case.name, []).append(case)
    rows = [_row(name, group, origins) for name, group in sorted(by_name.items())]
    return sorted(rows, key=lambda row: row[2] == "-")


def _row(name: str, group: Sequence[Case], origins: Origins) -> Row:
    unknown = [case for case in group if not case.answers["known"]]
    case = unknown[0] if unknown else max(group, key=lambda c: len(c.factors))
    if unknown:
        reasons = [reason for (reason,) in case.answers["no_rule"]] or ["no rule covers it"]
        return (name, len(group), "-", f"none, at {case.place}: {reasons[0]}")
    origin = origins.first(case)
    return (name, len(group), origin.place if origin else "-", summary(case))


def ops_text(rows: Sequence[Row]) -> str:
    """The rows as a table of plain text, with a line that counts the ops without a rule."""
    missing = [name for name, _, place, _ in rows if place == "-"]
    counted = f"{len(rows)} ops, {len(missing)} without a rule" + (
        f": {', '.join(missing)}" if missing else ""
    )
    return f"{table(('op', 'signatures', 'rule', 'what it says'), rows)}\n\n{counted}"
