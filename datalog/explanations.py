"""Why a tuple holds, and why another does not: proof trees as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..collector import no_collections
from ..engine.language.syntax import Atom, Clause, Literal, Negation
from ..engine.plan.plan import Source
from ..engine.provenance.matching import Rules
from ..engine.provenance.proof import Proof
from ..engine.provenance.search import TRIES, Attempt
from ..markup import Html, element
from .values import Texts

_COUNTED = 5  # tuples of aggregates that a text shows
_DEEPEST = 32  # levels that stand one in the other
_OPEN = 3  # levels that are open in a notebook
_INDENTED = "margin-left: 1.5em"


@dataclass(frozen=True)
class Explanation:
    """Why a tuple holds: ``proof`` is a proof of least height. Steps are numbered, nearer ones first; the
    goal has number 0.

    ``height`` is the number of rules on the longest path from the tuple to a fact, including steps that are
    left open. A fact has height 0. Tuples that an aggregate goes through do not count.
    """

    proof: Proof
    height: int
    _rules: Rules
    _texts: Texts
    # The rules that derive a relation from premises of others.
    _applied: dict[tuple[int, str, frozenset[str]], Clause | None] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return self.text()

    @property
    def fact(self) -> str:
        """The tuple, as in ``path(1, 5)``."""
        return self._texts.fact(self.proof.relation, self.proof.row)

    @no_collections()
    def text(self) -> str:
        """The proof as an indented tree, then the rules in it. A tuple that has several uses is proved at the
        first; a tree that is deep goes on below, at the margin."""
        lines: list[str] = []
        rules: dict[Source, None] = {}
        shown: set[int] = set()
        trees = [self.proof]
        for tree in trees:  # which grows
            waiting: list[tuple[int, str | Proof]] = [] if id(tree) in shown else [(0, tree)]
            while waiting:
                depth, step = waiting.pop()
                margin = "  " * depth
                if isinstance(step, str):
                    lines.append(margin + step)
                    continue
                fact = margin + self._texts.fact(step.relation, step.row)
                if depth == _DEEPEST and step.premises and id(step) not in shown:
                    lines.append(f"{fact}  as below")
                    trees.append(step)
                    continue
                lines.append(fact + self._how(step, shown))
                if id(step) in shown:
                    continue
                shown.add(id(step))
                if step.source:
                    rules[step.source] = None
                if step.sentence:
                    lines.append(f"{margin}  | {step.sentence}")
                waiting += [(depth + 1, part) for part in reversed(self._below(step))]
        if rules:
            lines.append("by")
        lines += [f"  {source.file}:{source.line}  {_one_line(source.text)}" for source in rules]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The proof as a tree whose steps open and close; nearest steps are open."""
        return self._as_html(self.proof, 0, set())

    def _as_html(self, step: Proof, depth: int, shown: set[int]) -> Html:
        fact = element("code", self._texts.fact(step.relation, step.row))
        how, below = self._how(step, shown), self._below(step)
        if id(step) in shown or not below or depth == _DEEPEST:
            more = "  ..." if below and depth == _DEEPEST and id(step) not in shown else how
            return element("div", fact, more, style=_INDENTED)
        shown.add(id(step))
        parts = [element("summary", fact, how)]
        if step.sentence:
            parts.append(element("div", element("i", step.sentence), style=_INDENTED))
        for part in below:
            if isinstance(part, str):
                parts.append(element("div", element("code", part), style=_INDENTED))
            else:
                parts.append(self._as_html(part, depth + 1, shown))
        opened = {"open": "open"} if depth < _OPEN else {}
        return element("details", *parts, style=_INDENTED, **opened)

    def _below(self, step: Proof) -> list[str | Proof]:
        """The premises of a step: texts and steps."""
        below: list[str | Proof] = [*self._conditions(step), *step.premises, *step.counted[:_COUNTED]]
        if len(step.counted) > _COUNTED:
            below.append(f"... and {len(step.counted) - _COUNTED} more")
        return below

    @no_collections()
    def as_json(self) -> dict[str, Any]:
        """The proof as its steps, by number, in the form that ``shardlog datalog --schema`` describes."""
        steps = list(self.proof.steps())
        numbers = {id(step): number for number, step in enumerate(steps)}
        return {
            "fact": self.fact,
            "height": self.height,
            "steps": [
                {
                    "id": number,
                    "fact": self._texts.fact(step.relation, step.row),
                    "relation": step.relation,
                    "rule": _rule_json(step.source),
                    "sentence": step.sentence,
                    "premises": [numbers[id(premise)] for premise in step.premises],
                    "counted": [numbers[id(premise)] for premise in step.counted],
                    "conditions": self._conditions(step),
                    "open": step.open,
                    "joined": self._joins(step),
                    "replaced": step.replaced is not None,
                    "replaced_by": next(iter(self._replacing(step)), None),
                }
                for number, step in enumerate(steps)
            ],
        }

    def _how(self, step: Proof, shown: set[int]) -> str:
        if step.open:
            return "  ..."
        if id(step) in shown:
            return "  as above" if step.source or step.premises else ""
        how = "  by equivalence" if step.premises else ""
        if step.source:
            joined = ""
            if self._joins(step):
                parts = " and ".join(self._texts.fact(part.relation, part.row) for part in step.premises)
                joined = f"joined of {parts} "
            how = f"  {joined}by {step.source.file}:{step.source.line}"
        if step.replaced is None:
            return how
        by = "".join(f" by {other}" for other in self._replacing(step))
        return f"{how}{'; ' if how else '  '}replaced{by}"

    def _replacing(self, step: Proof) -> list[str]:
        """The tuple that has replaced the tuple of a step, if any."""
        return [self._texts.fact(step.relation, row) for row in step.replaced or ()]

    def _joins(self, step: Proof) -> bool:
        """Whether a step is the bound of two tuples in a lattice."""
        clause = self._clause(step)
        return clause is not None and clause.joins

    def _conditions(self, step: Proof) -> list[str]:
        """The other conditions of the rule, with values: negations, comparisons, equations. Two joined tuples
        are always incomparable, which is not mentioned."""
        clause = self._clause(step)
        if clause is None or clause.joins:
            return []
        literals = [literal for literal in clause.body if not isinstance(literal, Atom)]
        if not literals:
            return []
        kinds, values = self._rules.kinds(clause), dict(step.bindings)
        return [self._texts.literal(literal, kinds, values) for literal in literals]

    def _clause(self, step: Proof) -> Clause | None:
        """The clause of a rule that a step applies: its body has the step's premises."""
        if step.source is None:
            return None
        names = frozenset([premise.relation for premise in step.premises])
        applied = (id(step.source), step.relation, names)
        if applied not in self._applied:
            self._applied[applied] = None
            for clause in self._rules.clauses(step.source):
                atoms = {literal.name for literal in clause.body if isinstance(literal, Atom)}
                if clause.head.name == step.relation and atoms == names:
                    self._applied[applied] = clause
                    break
        return self._applied[applied]


@dataclass(frozen=True)
class WhyNot:
    """Why a tuple does not hold: how far each rule that could give it gets."""

    relation: str
    row: tuple[Any, ...]
    attempts: tuple[Attempt, ...]
    _rules: Rules
    _texts: Texts

    def __str__(self) -> str:
        return self.text()

    @property
    def fact(self) -> str:
        """The tuple, as in ``path(5, 1)``."""
        return self._texts.fact(self.relation, self.row)

    def text(self) -> str:
        """The literals that hold, rule by rule, and the first that does not."""
        lines = [f"{self.fact} does not hold"]
        if not self.attempts:
            lines.append(f"  it is not a fact, and no rule gives `{self.relation}`")
        for attempt in self.attempts:
            source = attempt.source
            lines.append(f"  {source.file}:{source.line}  {_one_line(source.text)}")
            lines += [f"      {text}" for text in self._held_literals(attempt)]
            lines.append(f"    ! {self._missing(attempt)}")
            if not attempt.complete:
                lines.append(f"      ({TRIES:,} combinations of tuples were tried: others may get further)")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return element("pre", self.text())

    def as_json(self) -> dict[str, Any]:
        """The same as JSON, in the form that ``shardlog datalog --schema`` describes."""
        return {
            "fact": self.fact,
            "attempts": [
                {
                    "rule": _rule_json(attempt.source),
                    "found": list(self._held_literals(attempt)),
                    "missing": self._missing(attempt),
                    "complete": attempt.complete,
                }
                for attempt in self.attempts
            ],
        }

    def _held_literals(self, attempt: Attempt) -> Iterator[str]:
        return (self._literal(literal, attempt) for literal in attempt.found)

    def _missing(self, attempt: Attempt) -> str:
        literal = attempt.missing
        if literal is None:
            return "all of it holds: the tuple was not chosen, or another made it superfluous"
        if literal is attempt.clause.head:
            return f"{self._literal(literal, replace(attempt, bindings={}))} is not {self.fact}"
        if isinstance(literal, Negation):
            return f"{self._literal(literal.atom, attempt)} holds"
        return f"{'no' if isinstance(literal, Atom) else 'not'} {self._literal(literal, attempt)}"

    def _literal(self, literal: Literal, attempt: Attempt) -> str:
        return self._texts.literal(literal, self._rules.kinds(attempt.clause), attempt.bindings)


def _rule_json(source: Source | None) -> dict[str, Any] | None:
    return None if source is None else {"file": source.file, "line": source.line, "text": source.text}


def _one_line(text: str) -> str:
    return " ".join(text.split())
