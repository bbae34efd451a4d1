"""Copies that ops make because they need another memory layout, by ``rules/cost/layouts.dl``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from ..program.mlir.modules import operations_in
from ..program.signature import Told, describe
from ..rulebook.shipped import shipped
from ..rulebook.traits import OpTraits
from .storing import Storing, element_of, unchanged, used_once

_TOLD = ("op", "slot", "dim", "element", "attribute_number", "attribute_item", "attribute_symbol")


class Form(NamedTuple):
    """The memory layout of a value: its dimensions, outermost first (none: in their own order), and the width
    of its elements relative to their type."""

    dims: tuple[int, ...] = ()
    wide: int = 1


@dataclass(frozen=True)
class Ordering:
    """The layouts that an op needs of its operands and gives its results, by slot, if they are not the
    default; the ``pieces`` of its operand and result that are separate; the extra bytes that it ``needs``;
    and whether it writes results ``in_place`` of operands."""

    forms: Mapping[int, Form]
    pieces: int = 1
    needs: int = 0
    in_place: bool = False


_PLAIN, _OWN = Ordering({}), Form()


class MemoryLayouts:
    """The memory layouts of the values of one module."""

    def __init__(self, storing: Storing) -> None:
        self.storing, self._lowering = storing, storing.traits.lowering
        self._rules = forms(storing.traits, storing.allocation.platform)
        self._platform = storing.allocation.platform
        self._told = Told()
        self._known: dict[Any, Ordering] = {}
        self._inside: dict[Any, int] = {}

    def of(self, op: Any) -> Ordering:
        """The answers of the rules about an op."""
        if not self._rules.asked(op.name)[0]:
            return _PLAIN
        if op not in self._known:
            facts = describe(op, False, {}, self._told)
            told = tuple((name, tuple(facts.get(name, ()))) for name in _TOLD)
            self._known[op] = self._rules.ordering(told)
        return self._known[op]

    def wanted(self, op: Any, number: int) -> Form:
        """The layout that an op needs of an operand."""
        if self._platform and self._lowering(op.name) == "loop" and unchanged(op, number):
            return Form((), self._wide_inside(op.regions[1].blocks[0].arguments[number]))
        return self.of(op).forms.get(number, _OWN)

    def _wide_inside(self, value: Any) -> int:
        """How many times as wide as its type a loop-invariant value is inside of a loop. Values that every
        iteration would widen are widened before it."""
        if value not in self._inside:
            element, wide = element_of(value), [1]
            for use in value.uses:
                user, number = use.owner.operation, use.operand_number
                computed = bool(user.results) and self._lowering(user.name) != "loop"
                wide.append(self.wanted(user, number).wide)
                wide.append(self._rules.never_narrow(user.name, element) if computed else 1)
            self._inside[value] = max(wide)
        return self._inside[value]

    def form(self, value: Any) -> Form:
        """The layout of a value. A value with one user has the layout that the user needs."""
        if isinstance(value.owner, ir.Block):
            loop = value.owner.owner.operation
            return self.wanted(loop, value.arg_number) if self._lowering(loop.name) == "loop" else _OWN
        if not self.storing.of(value).loop:
            slot = len(value.owner.operands) + value.result_number
            return self.of(value.owner.operation).forms.get(slot, _OWN)
        use = self._only_use(value)
        return self.of(use.owner.operation).forms.get(use.operand_number, _OWN) if use else _OWN

    def _only_use(self, value: Any) -> Any:
        """The only use of a value, also under another type; None if there are several."""
        while True:
            if not used_once(value):
                return None
            use = next(iter(value.uses))
            user = use.owner.operation
            if not user.results or self.storing.of(user.results[0]).same != use.operand_number:
                return use
            value = user.results[0]

    def size(self, value: Any) -> int:
        """The bytes of a value in its memory layout."""
        return self.storing.size(value) * self.form(value).wide

    def replaced(self, value: Any) -> Iterator[Any]:
        """The values that the result of an op may overwrite, if they have its size and are dead."""
        how = self._lowering(value.owner.operation.name)
        if how == "branches":
            yield from self._handed_on(value)
        elif self.of(value.owner.operation).in_place:
            yield from map(self.storing.memory_of, value.owner.operands)
        elif self.storing.of(value).in_place:
            taken: Iterable[Any] = self.storing.inputs(value)
            if how == "loop":  # carried values stay in place
                taken = [self.storing.memory_of(value.owner.operands[value.result_number])]
            for each in taken:
                other = self.storing.of_sums(each) and not self._for_sums(
                    value
                )  # partial sums have another shape
                if not (other or self.form(each).dims):
                    yield each

    def _handed_on(self, value: Any) -> Iterator[Any]:
        """The value that the first branch returns unchanged, if the other branches overwrite it, or do not
        read it. XLA copies values that another branch returns unchanged."""
        ends = [[*region.blocks[0].operations][-1] for region in value.owner.regions]
        first, *others = ((end.operands[value.result_number], end.operation.block) for end in ends)
        before = first[0]
        if _block_of(before) != first[1] and all(
            self._written_over(given, before, block) for given, block in others
        ):
            yield self.storing.memory_of(before)

    def _written_over(self, value: Any, before: Any, block: Any) -> bool:
        """Whether a branch's result overwrites the former value, or the former value is not read there."""
        if value == before:
            return True
        if _block_of(value) == block and any(
            self._written_over(each, before, block) for each in self.replaced(value)
        ):
            return True
        ops = (op for each in block.operations for op in (each, *operations_in(each)))
        return not any(before in op.operands for op in ops)

    def _for_sums(self, value: Any) -> bool:
        """Whether a value is the operand of partial sums, and computed in their shape."""
        users = (use.owner.operation for use in value.uses)
        return any(self.storing.of_sums(result) for user in users for result in user.results)

    def copied(self, op: Any) -> Iterator[tuple[Any, int]]:
        """The operands that an op copies, as the values whose memory they are, and the bytes of copies."""
        if not self._platform or any(self.storing.of(v).loop for v in op.results):
            return
        layout, any_order = self.of(op), self._rules.asked(op.name)[1]
        for number, operand in enumerate(op.operands):
            value = self.storing.memory_of(operand)
            has, wanted = self.form(value), self.wanted(op, number)
            computed = not isinstance(value.owner, ir.Block) and self.storing.of(value).loop
            if computed and self._only_use(value):
                continue  # in the wanted layout
            if not op.results and value.owner == op.operation.block:
                continue  # it is loop-invariant
            dims = has.dims if any_order else wanted.dims
            if has != (dims, wanted.wide) or (has.dims and value != operand) or layout.pieces > 1:
                yield value, self.storing.size(value) * wanted.wide


def _block_of(value: Any) -> Any:
    """The block that defines a value."""
    return value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block


class Forms:
    """The answers of ``rules/cost/layouts.dl`` about ops with these traits, for a platform's compiler."""

    def __init__(self, traits: OpTraits, platform: str) -> None:
        program = shipped("cost/layouts")
        self._solver = program.solver({"platform": [(platform,)], **traits.given_to(program)})
        self._asked: dict[str, tuple[bool, bool]] = {}
        self._wide: dict[tuple[str, str], int] = {}
        self._orderings: dict[Any, Ordering] = {}

    def asked(self, name: str) -> tuple[bool, bool]:
        """Whether the rules need more facts about ops of a name, and whether these accept any order."""
        if name not in self._asked:
            said = self._solver.solve({"op": [(name,)]}, ["asked", "any_order"])
            self._asked[name] = bool(said["asked"]), bool(said["any_order"])
        return self._asked[name]

    def never_narrow(self, name: str, element: str) -> int:
        """How many times as wide as their type ops of a name compute elements."""
        if (name, element) not in self._wide:
            facts: dict[str, list[tuple[Any, ...]]] = {"op": [(name,)], "element": [(0, element, 0)]}
            said = self._solver.solve(facts, ["times_as_wide"])["times_as_wide"]
            self._wide[name, element] = max((times for (times,) in said), default=1)
        return self._wide[name, element]

    def ordering(self, told: tuple[tuple[str, Any], ...]) -> Ordering:
        """The answers of the rules about an op."""
        if told not in self._orderings:
            facts = dict(told)
            self._orderings[told] = _ordering(facts, self._solver.solve(facts))
        return self._orderings[told]


@lru_cache(maxsize=16)
def forms(traits: OpTraits, platform: str) -> Forms:
    """The rules for ops with these traits. Answers are kept."""
    return Forms(traits, platform)


def _ordering(facts: Mapping[str, Any], said: Mapping[str, Any]) -> Ordering:
    sizes = {(slot, dim): size for slot, dim, size in facts["dim"]}
    bits = {slot: width for slot, _, width in facts["element"]}
    wide = {slot: width // bits[slot] for slot, width in said["widened"]}
    places: dict[int, list[tuple[int, int]]] = {}
    for slot, place, dim in said["placed"]:
        if sizes[slot, dim] > 1:
            places.setdefault(slot, []).append((place, dim))
    forms = {}
    for slot, *_ in facts["slot"]:
        dims = tuple(dim for _, dim in sorted(places.get(slot, ())))
        form = Form(dims if list(dims) != sorted(dims) else (), wide.get(slot, 1))
        if form != _OWN:
            forms[slot] = form
    needs = sum(
        width * prod(size for (of, _), size in sizes.items() if of == slot) for slot, width in said["needs"]
    )
    ((pieces,),) = said["pieces"] or [(1,)]
    return Ordering(forms, pieces, needs, bool(said["aliased"]))
