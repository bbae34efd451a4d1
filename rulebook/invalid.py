"""Errors in the rules about an op: the findings of ``rules/ops/invalid.dl``, with their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..engine import LoadedProgram
from ..errors import ShardlogError

if TYPE_CHECKING:
    from ..engine.provenance.proof import Proof
    from .written import SourceLine

RELATIONS = ("invalid", "invalid_edge")
MISFIT = ("misfit",)  # of these, what a program has wrong
Facts = Mapping[str, Sequence[tuple[Any, ...]]]
_LONGEST = 120  # of a rule that is shown


@dataclass(frozen=True)
class Invalid:
    """Something that is wrong: what, and the rule of a user that it follows from, if it does, with its place,
    ``file:line``."""

    what: str
    place: str = ""
    rule: str = ""

    def __str__(self) -> str:
        return f"{self.what} ({self.place})" if self.place else self.what

    def error(self, facts: Facts) -> ShardlogError:
        """The error about an op with these facts."""
        rule = " ".join(self.rule.split())
        shown = rule if len(rule) <= _LONGEST else f"{rule[:_LONGEST]}..."
        message = f"wrong rule for {describe_op(facts)}: {self.what}"
        return ShardlogError(message, where=self.place, hint=f"it follows from: {shown}")


def find_invalid(
    program: LoadedProgram,
    facts: Facts,
    own: Mapping[tuple[str, str], SourceLine],
    builtin: str,
    relations: Sequence[str] = RELATIONS,
) -> Iterator[Invalid]:
    """The errors in the rules about the op with ``facts``, in order. Those come first that follow from
    rules outside of the folder ``builtin``, or from the facts ``own``."""
    from ..engine.provenance.proof import Derivations

    derivations = Derivations(program, facts, relations)
    errors = []
    for name in relations:
        for row in derivations.rows(name):
            proof = derivations.proof(name, row)
            if proof is not None:
                fault = proof.sentence[:1].lower() + proof.sentence[1:].removesuffix(".")
                errors.append(Invalid(fault, *(_place(proof, own, builtin) or ())))
    yield from sorted(dict.fromkeys(errors), key=lambda invalid: not invalid.place)


def _place(proof: Proof, own: Mapping[tuple[str, str], SourceLine], builtin: str) -> tuple[str, str] | None:
    """The place of the nearest rule or fact of a user, and its text."""
    for step in proof.steps():
        if step.source is not None:
            if not step.source.file.startswith(builtin):
                return f"{step.source.file}:{step.source.line}", step.source.text
        else:
            for value in step.row[:1]:
                if (step.relation, value) in own:
                    file, line, text = own[step.relation, value]
                    return f"{file}:{line}", text
    return None


def describe_op(facts: Facts) -> str:
    """An op by its name and its types: ``my.op (8x4xf32, f32) -> (8xf32)``."""
    targets = [v for name, v in facts.get("attribute_symbol", ()) if name == "call_target_name"]
    elements = {t: element for t, element, *_ in facts.get("element", ())}
    sizes: dict[int, dict[int, int]] = {}
    for t, d, size in facts.get("dim", ()):
        sizes.setdefault(t, {})[d] = size
    types: dict[str, list[str]] = {"operand": [], "result": []}
    for t, role, _, rank in sorted(facts.get("slot", ())):
        dims = [str(size) for _, size in sorted(sizes.get(t, {}).items())]
        types[role].append("x".join([*dims, elements.get(t, "?")]) if rank >= 0 else "?")
    name = f"@{targets[0]}" if targets else str(facts["op"][0][0])
    return f"{name} ({', '.join(types['operand'])}) -> ({', '.join(types['result'])})"
