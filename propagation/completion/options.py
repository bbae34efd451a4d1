"""The sharding options of ops, as the rules choose them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...errors import ShardlogError
from ...importers.program import ModuleReader
from ...program.reductions import COMBINED_BY
from ...rulebook.book import RuleBook
from .notes import Facts, Note, Notes
from .user_options import UserOption

BINDS, WISHES = "binds", "wishes"
_MOST_WISHES = 10  # that a candidate may drop; those after the first ten are kept


class Seen(NamedTuple):
    """The annotation that an op sees of an operand or result: its number and strength. ``differs``: the users
    of a result have different ones."""

    note: Note
    strength: str
    differs: bool = False


@dataclass(frozen=True)
class ChosenOption:
    """The outcome of a visit: the axes of each loop, and the annotation of each slot that is a tensor."""

    facts: Facts  # the question
    loops: tuple[tuple[int, tuple[int, ...]], ...]
    notes: tuple[tuple[int, Note], ...]  # by slot
    resharding: int  # 0: no annotation, 1: only those for other ops, 2: some that bind the op


Asked = Mapping[str, Sequence[tuple[Any, ...]]]


@dataclass(frozen=True)
class CarriedValue:
    """A value that an op carries through its regions: the slot of its operand, if there is one, and of its
    result; the arguments that it is in regions, and the places at which regions return it, each as the region
    and which one."""

    operand: int | None
    result: int
    arguments: tuple[tuple[int, int], ...]
    returned: tuple[tuple[int, int], ...]


def _carried(signature: Asked, answers: Asked) -> tuple[CarriedValue, ...]:
    operands = sum(role == "operand" for _, role, *_ in signature["slot"])
    ranked = {t for t, *_ in signature.get("dim", ())}
    rows, values = (*answers["edge_source"], *answers["edge_target"]), list[CarriedValue]()
    for (edge,) in sorted(answers["edge"]):
        ends = sorted({(end, r, i) for number, end, r, i in rows if number == edge})
        each = {kind: tuple((r, i) for end, r, i in ends if end == kind) for kind in ("argument", "return")}
        result = next((operands + i for end, _, i in ends if end == "result"), -1)
        operand = next((i for end, _, i in ends if end == "operand"), None)
        if result in ranked:  # scalars, and bodies of programs of one device, are left alone
            values.append(CarriedValue(operand, result, each["argument"], each["return"]))
    return tuple(values)


def _passed_on(signature: Asked, value: CarriedValue) -> Facts:
    """A rule by which a carried value is the same before, inside and behind an op, dimension by dimension."""
    sizes = sorted((d, size) for t, d, size in signature["dim"] if t == value.result)
    slots = [value.result] if value.operand is None else [value.operand, value.result]
    return {
        "slot": [row for row in signature["slot"] if row[0] in slots],
        "factor": [(d, size) for d, size in sizes],
        "kind": [(d, "pass_through") for d, _ in sizes],
        "maps": [(slot, d, 0, d) for slot in slots for d, _ in sizes],
    }


class OptionChooser:
    """Asks the rules for options; equal questions are asked once."""

    def __init__(self, reader: ModuleReader, book: RuleBook, leaves_partial: bool) -> None:
        self.classes, self.shardings = reader.classes, reader.shardings
        self.notes = Notes(reader.shardings)
        self.book = book
        self.mode: Facts = {"leaves_partial": [()]} if leaves_partial else {}
        self._questions: dict[
            tuple[int, tuple[tuple[int, Seen], ...], UserOption | None], ChosenOption | None
        ] = {}
        self._ops: dict[int, tuple[int, Facts]] = {}
        self._alike: dict[Any, int] = {}
        self._carried: dict[int, tuple[CarriedValue, ...]] = {}
        self._passed: dict[Any, ChosenOption | None] = {}

    def op(self, signature: int) -> tuple[int, Facts]:
        """The op's rule as facts, and a number that equal rules share."""
        if signature not in self._ops:
            signature_facts = self.classes.facts(signature)
            answers = self.book.classify(signature_facts)
            facts: Facts = {
                "slot": list(signature_facts.get("slot", ())),
                "factor": answers["factor"] if answers["known"] else [],
                **{name: answers[name] for name in ("kind", "maps", "blocked", "windowed")},
            }
            if answers["edge"]:
                self._carried[signature] = _carried(signature_facts, answers)
            if self.mode:
                facts["combines"] = [(name,) for name in self._combines(signature, signature_facts)]
            key = tuple((name, tuple(rows)) for name, rows in facts.items())
            self._ops[signature] = self._alike.setdefault(key, len(self._alike)), facts
        return self._ops[signature]

    def carried(self, signature: int) -> tuple[CarriedValue, ...]:
        """The values that an op carries through its regions."""
        self.op(signature)
        return self._carried.get(signature, ())

    def pass_on(
        self, signature: int, value: CarriedValue, seen: tuple[tuple[int, Seen], ...]
    ) -> ChosenOption | None:
        """The option of an op for one of the values that it carries."""
        key = signature, value, seen
        if key not in self._passed:
            facts = _passed_on(self.classes.facts(signature), value)
            self._passed[key] = self._chosen(facts, seen, None)
        return self._passed[key]

    def _combines(self, signature: int, facts: Any) -> list[str]:
        """The reductions that combine the partial results of an op, as "sum"."""
        local_answers = self.book.localize(facts)
        names = {str(name) for (name,) in local_answers["combined_by"]}
        op = self.classes.signatures.examples[signature]
        if local_answers["combined_by_itself"] and op is not None and len(op.regions):
            inside = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
            names.update(name.partition(".")[2] for name in inside[:-1] if len(inside) == 2)
        return [kind for kind, name in COMBINED_BY.items() if name.partition(".")[2] in names]

    def choose(
        self, signature: int, seen: tuple[tuple[int, Seen], ...], user_option: UserOption | None = None
    ) -> ChosenOption | None:
        """The option of an op that sees these annotations, by slot; None where there is none. What the user
        tells is its option, whatever it sees.

        Raises ShardlogError where an op cannot have the option that the user gives it.
        """
        number, facts = self.op(signature)
        if user_option is not None and len(user_option.loops) > len(facts["factor"]):
            message = f"{len(user_option.loops)} lists, and the op has {len(facts['factor'])} loops"
            hint = "give one list for each loop; shardlog rules show lists them"
            raise ShardlogError(message, where=user_option.where, hint=hint)
        key = number, seen, user_option
        if key not in self._questions:
            self._questions[key] = self._chosen(facts, seen, user_option) if facts["maps"] else None
        return self._questions[key]

    def _chosen(
        self, op: Facts, seen: tuple[tuple[int, Seen], ...], user_option: UserOption | None
    ) -> ChosenOption | None:
        facts: Facts = {**op, **self.mode, **(user_option.facts if user_option else {})}
        for slot, one in seen:
            facts.setdefault("annotated", []).append((slot, one.strength))
            if one.differs:
                facts.setdefault("differs", []).append((slot,))
            for name, rows in self.notes.at(one.note, slot):
                facts.setdefault(name, []).extend(rows)
        wishes = min(sum(one.strength == WISHES for _, one in seen), _MOST_WISHES)
        for candidates in ([0], range(2**wishes)):
            facts["candidate"] = [(c,) for c in candidates]
            answers = self.book.completion(facts)
            if answers["chosen"] and min(level for _, level in answers["resharding"]) == 0:
                break
        if user_option is not None and answers["unsplit"]:
            (loop,) = min(answers["unsplit"])
            hint = "ops are split along parallel loops and reductions of more than one element"
            raise ShardlogError(f"loop {loop} of the op cannot be split", where=user_option.where, hint=hint)
        if not answers["chosen"]:
            return None
        return self._read(facts, answers)

    def _read(self, facts: Facts, answers: Facts) -> ChosenOption:
        (grid,) = answers["grid"][0]
        notes = []
        ranks = {slot: rank for slot, _, _, rank in facts["slot"]}
        for (slot,) in sorted(answers["tensor"]):
            sharded = [(d, p, x) for t, d, p, x in answers["becomes"] if t == slot]
            partial = [x for t, _, _, x in sorted(answers["becomes_partial"]) if t == slot]
            reduction = next((kind for t, kind in sorted(answers["becomes_by"]) if t == slot), "sum")
            notes.append((slot, self.notes.given(grid, ranks[slot], sharded, partial, reduction)))
        loops: dict[int, list[int]] = {}
        for loop, _, axis in sorted(answers["loops"]):
            loops.setdefault(loop, []).append(axis)
        ((chosen,),) = answers["chosen"]
        level = next(level for c, level in answers["resharding"] if c == chosen)
        return ChosenOption(
            facts, tuple((loop, tuple(axes)) for loop, axes in loops.items()), tuple(notes), level
        )
