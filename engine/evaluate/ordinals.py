"""The numbers of symbols, for ``ord`` and for choices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..plan.plan import QueryPlan, Relation

_MADE = 1 << 62  # more than there are symbols


class Ordinals(dict[str, int]):
    """The numbers of symbols by their first appearance: in the program's text, then in facts, as they were
    added. Symbols that rules create have a hash of their text, which differs from all such numbers.

    So the numbers do not depend on how rules are carried out. In a keyed program no symbol counts as having
    appeared, so that it does not matter which keys came before.
    """

    def __init__(self, plan: QueryPlan | None = None) -> None:
        self._counts = plan is not None and plan.key is None
        if plan is not None:
            self._appear(plan.texts)

    def note(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        """Note the symbols of facts."""
        if any(column.type in ("symbol", "record") for column in relation.columns):
            for row in rows:
                self._appear(row)

    def _appear(self, values: Iterable[Any]) -> None:
        for value in values if self._counts else ():
            if isinstance(value, str):
                self.setdefault(value, len(self))
            elif isinstance(value, tuple):
                self._appear(value)

    def __missing__(self, text: str) -> int:
        return hashed(text)


def hashed(text: str) -> int:
    """The ordinal of a text that is made by a rule: FNV-1a, the same everywhere."""
    digest = 0xCBF29CE484222325
    for byte in text.encode():
        digest = (digest ^ byte) * 0x100000001B3 & ((1 << 64) - 1)
    return digest & (_MADE - 1) | _MADE
