"""Copies that ops make because they need another memory layout, by ``rules/cost/layouts.dl``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

from ..program.signature import DescribedParts, describe
from ..rulebook.shipped import shipped
from ..rulebook.traits import OpTraits
from .storing import Storing

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
_UNCOPIED: Mapping[int, int] = MappingProxyType({})


class MemoryLayouts:
    """The memory layouts of the values of one module. Ops and values are given by their numbers in the graph
    of ``storing``."""

    def __init__(self, storing: Storing) -> None:
        self.storing, self.graph, self._lowering = storing, storing.graph, storing.traits.lowering
        self._rules = forms(storing.traits, storing.allocation.platform)
        self._platform = storing.allocation.platform
        self._told = DescribedParts()
        self._known: dict[int, Ordering] = {}
        self._inside: dict[int, int] = {}

    def of(self, op: int) -> Ordering:
        """The answers of the rules about an op."""
        answered = self._known.get(op)
        if answered is None:
            answered = self._known[op] = self._of(op)
        return answered

    def _of(self, op: int) -> Ordering:
        if not self._rules.asked(self.graph.plain[op])[0]:
            return _PLAIN
        facts = describe(self.graph.ops[op], False, {}, self._told)
        return self._rules.ordering(tuple((name, tuple(facts.get(name, ()))) for name in _TOLD))

    def wanted(self, op: int, number: int) -> Form:
        """The layout that an op needs of an operand."""
        graph = self.graph
        if self._platform and self._lowering(graph.plain[op]) == "loop" and graph.unchanged(op, number):
            return Form((), self._wide_inside(graph.arguments[graph.regions_of(op)[1]][number]))
        return self.of(op).forms.get(number, _OWN)

    def _wide_inside(self, value: int) -> int:
        """How many times as wide as its type a loop-invariant value is inside of a loop. Values that every
        iteration would widen are widened before it."""
        graph = self.graph
        if value not in self._inside:
            element, wide = graph.types[value].element, [1]
            for user, number in graph.uses[value]:
                name = graph.plain[user]
                computed = bool(graph.results[user]) and self._lowering(name) != "loop"
                wide.append(self.wanted(user, number).wide)
                wide.append(self._rules.never_narrow(name, element) if computed else 1)
            self._inside[value] = max(wide)
        return self._inside[value]

    def form(self, value: int) -> Form:
        """The layout of a value. A value with one user has the layout that the user needs."""
        graph = self.graph
        maker = graph.definers[value]
        if maker < 0:
            region, number = graph.entry(value)
            loop = graph.owners[region]
            return self.wanted(loop, number) if self._lowering(graph.plain[loop]) == "loop" else _OWN
        if not self.storing.at(value).loop:
            slot = len(graph.operands[maker]) + graph.number_of(value)
            return self.of(maker).forms.get(slot, _OWN)
        use = self._only_use(value)
        return self.of(use[0]).forms.get(use[1], _OWN) if use else _OWN

    def _only_use(self, value: int) -> tuple[int, int] | None:
        """The only use of a value, also under another type; None if there are several."""
        graph = self.graph
        while True:
            if not graph.used_once(value):
                return None
            ((user, number),) = graph.uses[value]
            results = graph.results[user]
            if not results or self.storing.at(results[0]).same != number:
                return user, number
            value = results[0]

    def size(self, value: int) -> int:
        """The bytes of a value in its memory layout."""
        return self.storing.size(value) * self.form(value).wide

    def replaced(self, value: int) -> Iterator[int]:
        """The values that the result of an op may overwrite, if they have its size and are dead."""
        graph, storing = self.graph, self.storing
        maker = graph.definers[value]
        how = self._lowering(graph.plain[maker])
        if how == "branches":
            yield from self._handed_on(value)
        elif self.of(maker).in_place:
            yield from map(storing.memory_of, graph.operands[maker])
        elif storing.at(value).in_place:
            taken: Iterable[int] = storing.inputs(value)
            if how == "loop":  # carried values stay in place
                taken = [storing.memory_of(graph.operands[maker][graph.number_of(value)])]
            for each in taken:
                other = storing.of_sums(each) and not self._for_sums(value)  # they have another shape
                if not (other or self.form(each).dims):
                    yield each

    def _handed_on(self, value: int) -> Iterator[int]:
        """The value that the first branch returns unchanged, if the other branches overwrite it, or do not
        read it. XLA copies values that another branch returns unchanged."""
        graph, number = self.graph, self.graph.number_of(value)
        regions = graph.regions_of(graph.definers[value])
        given = [graph.operands[graph.ops_of(region)[-1]][number] for region in regions]
        before = given[0]
        if graph.region_of(before) != regions[0] and all(
            self._written_over(each, before, region)
            for each, region in zip(given[1:], regions[1:], strict=True)
        ):
            yield self.storing.memory_of(before)

    def _written_over(self, value: int, before: int, region: int) -> bool:
        """Whether a branch's result overwrites the former value, or the former value is not read there."""
        graph = self.graph
        if value == before:
            return True
        if graph.region_of(value) == region and any(
            self._written_over(each, before, region) for each in self.replaced(value)
        ):
            return True
        return not any(graph.around(user, region) >= 0 for user, _ in graph.uses[before])

    def _for_sums(self, value: int) -> bool:
        """Whether a value is the operand of partial sums, and computed in their shape."""
        graph = self.graph
        users = (user for user, _ in graph.uses[value])
        return any(self.storing.of_sums(result) for user in users for result in graph.results[user])

    def copied(self, op: int) -> Mapping[int, int]:
        """The operands that an op copies, as the values whose memory they are, and the bytes of copies."""
        graph, storing = self.graph, self.storing
        if not self._platform or any(storing.at(v).loop for v in graph.results[op]):
            return _UNCOPIED
        copies = dict[int, int]()
        layout, any_order = self.of(op), self._rules.asked(graph.plain[op])[1]
        for number, operand in enumerate(graph.operands[op]):
            value = storing.memory_of(operand)
            has, wanted = self.form(value), self.wanted(op, number)
            computed = graph.definers[value] >= 0 and storing.at(value).loop
            if computed and self._only_use(value):
                continue  # in the wanted layout
            given = graph.definers[value] < 0 and graph.entry(value)[0] == graph.regions[op]
            if given and not graph.results[op]:
                continue  # it is loop-invariant
            dims = has.dims if any_order else wanted.dims
            if has != (dims, wanted.wide) or (has.dims and value != operand) or layout.pieces > 1:
                copies[value] = storing.size(value) * wanted.wide
        return copies


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
            answers = self._solver.solve({"op": [(name,)]}, ["asked", "any_order"])
            self._asked[name] = bool(answers["asked"]), bool(answers["any_order"])
        return self._asked[name]

    def never_narrow(self, name: str, element: str) -> int:
        """How many times as wide as their type ops of a name compute elements."""
        if (name, element) not in self._wide:
            facts: dict[str, list[tuple[Any, ...]]] = {"op": [(name,)], "element": [(0, element, 0)]}
            factors = self._solver.solve(facts, ["times_as_wide"])["times_as_wide"]
            self._wide[name, element] = max((times for (times,) in factors), default=1)
        return self._wide[name, element]

    def ordering(self, described: tuple[tuple[str, Any], ...]) -> Ordering:
        """The answers of the rules about an op."""
        if described not in self._orderings:
            facts = dict(described)
            self._orderings[described] = _ordering(facts, self._solver.solve(facts))
        return self._orderings[described]


@lru_cache(maxsize=16)
def forms(traits: OpTraits, platform: str) -> Forms:
    """The rules for ops with these traits. Answers are kept."""
    return Forms(traits, platform)


def _ordering(facts: Mapping[str, Any], answers: Mapping[str, Any]) -> Ordering:
    sizes = {(slot, dim): size for slot, dim, size in facts["dim"]}
    bits = {slot: width for slot, _, width in facts["element"]}
    wide = {slot: width // bits[slot] for slot, width in answers["widened"]}
    places: dict[int, list[tuple[int, int]]] = {}
    for slot, place, dim in answers["placed"]:
        if sizes[slot, dim] > 1:
            places.setdefault(slot, []).append((place, dim))
    forms = {}
    for slot, *_ in facts["slot"]:
        dims = tuple(dim for _, dim in sorted(places.get(slot, ())))
        form = Form(dims if list(dims) != sorted(dims) else (), wide.get(slot, 1))
        if form != _OWN:
            forms[slot] = form
    needs = sum(
        width * prod(size for (of, _), size in sizes.items() if of == slot)
        for slot, width in answers["needs"]
    )
    ((pieces,),) = answers["pieces"] or [(1,)]
    return Ordering(forms, pieces, needs, bool(answers["aliased"]))
