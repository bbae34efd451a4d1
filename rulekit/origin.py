"""The origins of what the rules say about an op: the rules that fired, with their places and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..engine.provenance.proof import Derivations, Proof
from ..rulebook.book import RuleBook
from ..rulebook.notations.einsum import SUFFIXES, parse_lines, read_text
from ..rulebook.shipped import RULES
from ..rulebook.written import SourceLine, fact_places
from .case import Case

# What every op shares: the vocabulary, and the numbering of factors.
_SHARED = {RULES / "ops" / name for name in ("schema.dl", "factors.dl")} | {
    RULES / "propagation" / "op_priorities.dl"
}
_SAID = (
    "edge",
    "edge_owner",
    "edge_source",
    "edge_target",
    "factor",
    "maps",
    "kind",
    "blocked",
    "no_rule",
    "known",
)


@dataclass(frozen=True, order=True)
class RuleOrigin:
    """A rule or fact that says something about an op; ``sentences`` have the values of this op."""

    file: str
    line: int
    text: str
    sentences: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """``file:line``; built-in files are named from the folder of the package."""
        root = str(RULES.parent)
        name = self.file.removeprefix(root + "/") if self.file.startswith(root + "/rules/") else self.file
        return f"{name}:{self.line}"


class Origins:
    """Looks up origins in the rules of a book."""

    def __init__(self, book: RuleBook) -> None:
        self._book = book

    def of(self, case: Case) -> list[RuleOrigin]:
        """The origins of all that the rules say about a case, by place."""
        derivations = Derivations(self._book.ops, {**case.facts, **self._book.shared}, _SAID)
        by_place: dict[tuple[str, int, str], dict[str, None]] = {}
        for name in _SAID:
            for row in derivations.rows(name):
                proof = derivations.proof(name, row)
                for step in proof.steps() if proof else ():
                    place = self._place(step)
                    if place is not None:
                        by_place.setdefault(place, {}).setdefault(step.sentence)
        return sorted(
            RuleOrigin(*place, tuple(s for s in sentences if s)) for place, sentences in by_place.items()
        )

    def first(self, case: Case) -> RuleOrigin | None:
        """The origin that names the op, or else the first one; None where no rule is about the op. The files
        of a user come first, the last one before the others."""
        # Lines of einsum notation come before Datalog.
        ranks = {str(f): (f.suffix not in SUFFIXES, -i) for i, f in enumerate(self._book.files)}
        origins = sorted(self.of(case), key=lambda origin: ranks.get(origin.file, (True, 1)))
        quoted, line = f'"{case.name.removeprefix("@")}"', f"{case.name}:"
        about = (o for o in origins if not o.text.startswith("looks_at"))
        naming = (o for o in about if quoted in o.text or o.text.startswith(line))
        return next(naming, origins[0] if origins else None)

    def _place(self, step: Proof) -> tuple[str, int, str] | None:
        if step.source is None:
            names = [v for v in step.row if isinstance(v, str)]
            return self._facts.get((step.relation, names[0])) if names else None
        if Path(step.source.file) in _SHARED:
            return None
        written = self._lines.get((step.source.file, step.source.line), step.source.text)
        return (step.source.file, step.source.line, written)

    def names(self, relation: str) -> list[str]:
        """The names that facts of a relation are about, such as "needs_no_rule"."""
        return sorted(name for name_of, name in self._facts if name_of == relation)

    @cached_property
    def _facts(self) -> dict[tuple[str, str], SourceLine]:
        """Facts about names: (relation, name) -> place and text."""
        files = (*sorted(RULES.rglob("ops/**/*.dl")), *self._book.files)
        return fact_places({str(path): read_text(path) for path in files})

    @cached_property
    def _lines(self) -> dict[tuple[str, int], str]:
        """Lines of einsum notation as they are written, by file and line."""
        return dict(self._written())

    def _written(self) -> Iterator[tuple[tuple[str, int], str]]:
        for path in self._book.files:
            if path.suffix in SUFFIXES:
                for line in parse_lines(str(path), read_text(path)):
                    yield (line.file, line.number), line.text
