"""The values of a program that are stored in memory, by ``rules/cost/storing.dl``."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..partition.finishing.combining.blocks import combination
from ..program.signature import DescribedParts, describe
from ..rulebook.shipped import shipped
from ..rulebook.traits import OpTraits
from .alike import Uses
from .graph import OpGraph
from .machine import Allocation

_TOLD = "dim", "attribute_item", "attribute_number"  # of a described op
_OFTEN = 16  # the most places of reading that are counted,
_MANY = 16  # and the most operands


@dataclass(frozen=True)
class Stored:
    """Whether a value is stored; the operand of its op whose memory it shares (``same``); whether it may be
    written ``in_place`` of an operand; whether it is part of the program, ``apart`` from other values;
    whether it is computed in a ``loop`` over its elements; whether its op reads operands at the place
    ``where`` its result is read, whatever the shapes; the op that its op ``runs_as``, if another; whether it
    is written in place only of values of its ``shape``; whether loops compute it ``again``, although it is
    stored; whether partial ``sums`` for it are stored, which take as much memory; and if it is stored
    ``beside_sums``, the size of blocks of these."""

    stored: bool
    same: int | None
    in_place: bool
    apart: bool = False
    loop: bool = False
    where: bool = False
    runs_as: str = ""
    shape: bool = False
    again: bool = False
    sums: bool = False
    beside_sums: int = 0


class Storing:
    """How the values of one module are stored under an allocation, and how much memory they take. Values
    ``on_host`` take the host's memory; with ``of_host`` that is counted in place of the device's. Ops and
    values are given by their numbers in a graph, except for those ``on_host``."""

    def __init__(
        self,
        allocation: Allocation,
        traits: OpTraits,
        on_host: Collection[Any] = (),
        *,
        of_host: bool = False,
        graph: OpGraph | None = None,
    ) -> None:
        self.allocation, self.traits = allocation, traits
        self.on_host, self.of_host = on_host, of_host
        self.graph = graph or OpGraph()
        self._rules = stores(traits)
        self._told = DescribedParts()
        self._known: dict[int, Stored] = {}
        self._looked = 0  # ops of the graph whose values were found together
        self._alike: dict[Any, Stored] = {}  # values of which the same is known
        self._sizes: dict[str, int] = {}  # by type
        self._readers: dict[int, dict[int, set[int]]] = {}  # of a value: in a loop the ops that say where
        self._users_of: dict[int, list[int]] = {}
        self._times: dict[tuple[int, int], int] = {}  # the times that a loop computes an op for an element
        self._constants: dict[
            int, tuple[bool, bool]
        ] = {}  # whether ops make such, and of such are broadcasts

    def at(self, value: int) -> Stored:
        """How the value with a number is stored, which an op makes."""
        stored = self._known
        storage = stored.get(value)
        if storage is not None:
            return storage
        if self._looked < len(self.graph.ops) and not (self.allocation.platform or self.on_host):
            self._find_alike()
            return self.at(value)
        left, results = [value], self.graph.results
        while left:  # how a value is stored depends on its users
            last = left[-1]
            waiting = (
                ()
                if last in stored
                else [
                    result for user in self._users(last) for result in results[user] if result not in stored
                ]
            )
            left += waiting
            if not waiting:
                left.pop()
                if last not in stored:
                    stored[last] = self._of(last)
        return stored[value]

    def _find_alike(self) -> None:
        """Finds how values are stored, once for those that are alike, and one by one for those with users in
        regions, and for results of loops. It depends on what their users run as, which is found so too."""
        graph, say, stored = self.graph, self._rules.say, self._known
        self._looked = len(graph.ops)
        uses = Uses(
            graph,
            lambda name: say("reduces_at_once", name),
            lambda name: self.traits.lowering(name) == "loop",
            self._look,
        )
        plain = uses.plain.tolist()
        others = sorted(set(range(len(graph.types))).difference(plain), reverse=True)
        others = [value for value in others if graph.definers[value] >= 0]
        names, before = graph.names, list[str]()
        while names != before:
            which, asked = uses.alike(names)
            each = [self._asked(*one[:4], (False, one.several, False, 0, False, 0, False)) for one in asked]
            stored.update(zip(plain, map(each.__getitem__, which.tolist()), strict=True))
            for value in others:  # users come first
                stored[value] = self._of(value)
            before, names = names, [*graph.names]
            renamed = [n for n, how in enumerate(each) if how.runs_as]
            changed = uses.plain[np.isin(which, renamed)].tolist() if renamed else []
            for value in changed + [value for value in others if stored[value].runs_as]:
                if graph.number_of(value) == 0:
                    names[graph.definers[value]] = stored[value].runs_as

    def _look(self, op: int) -> Hashable:
        """What the rules are told of an op that makes a value, equal for ops of a kind."""
        graph, results = self.graph, self.graph.results[op]
        if self._rules.say("described", graph.plain[op]):
            return graph.kinds[op]
        elements = tuple([graph.types[value].element for value in results])
        return graph.names[op], elements, min(len(graph.operands[op]), _MANY)

    def size(self, value: int) -> int:
        """The bytes that a value takes of the memory that counts."""
        if bool(self.on_host and self.graph.held(value) in self.on_host) != self.of_host:
            return 0
        type_ = self.graph.types[value].text
        if type_ not in self._sizes:
            self._sizes[type_] = self.allocation.size(type_)
        return self._sizes[type_]

    def of_sums(self, value: int) -> bool:
        """Whether a value is not stored for its users, but partial sums for it are."""
        return self.graph.definers[value] >= 0 and self.at(value).sums

    def memory_of(self, value: int) -> int:
        """The value whose memory a value shares: itself, or an operand of its op."""
        definers, operands = self.graph.definers, self.graph.operands
        while (definer := definers[value]) >= 0 and (same := self.at(value).same) is not None:
            operand = operands[definer][same]
            if definers[operand] >= 0 and not self.at(operand).stored:
                break
            value = operand
        return value

    def shares(self, value: int) -> bool:
        """Whether the value with a number, which an op makes, has the memory of an operand."""
        same, graph = self.at(value).same, self.graph
        if same is None:
            return False
        operand = graph.operands[graph.definers[value]][same]
        return graph.definers[operand] < 0 or self.at(operand).stored

    def inputs(self, value: int) -> Iterator[int]:
        """The operands of a value's definer, and of ops that are fused into it and not stored. Operands of
        another shape are omitted if the value cannot be in their place."""
        graph, shape = self.graph, self.at(value).shape
        types, definers = graph.types, graph.definers
        left, seen = [*graph.operands[definers[value]]], set[int]()
        for taken in left:  # which grows
            operand = self.memory_of(taken)
            # Products may have the same sizes in another order: they are computed in the wanted order.
            if operand in seen or (shape and sorted(types[operand].shape) != sorted(types[taken].shape)):
                continue
            seen.add(operand)
            yield operand
            if definers[operand] >= 0:
                how = self.at(operand)
                if how.in_place and not how.stored:
                    left += graph.operands[definers[operand]]

    def _of(self, value: int) -> Stored:
        graph, platform = self.graph, self.allocation.platform
        maker, used = graph.definers[value], self._users(value)
        uses, number = {user for user, _ in graph.uses[value]}, value - graph.results[maker].start
        lowering = self.traits.lowering(graph.plain[maker]) if graph.ends[maker] > maker + 1 else ""
        if lowering == "loop" and graph.unchanged(maker, number):
            return Stored(True, number, False)
        alone = next((taken for taken in graph.operands[maker] if graph.used_once(taken)), -1)
        made_from = graph.definers[alone] if alone >= 0 else -1
        outside = uses.difference(used)
        names = sorted({self._called(user) for user in uses - outside})
        large = min(self._large(maker, value), 2) if platform else 0
        key = (
            *(graph.kinds[maker], number, -1 if made_from < 0 else graph.kinds[made_from], *names, 0),
            *(bool(outside), len(used) > 1, self._moved(maker, value)),
            min(self._read(value), _OFTEN) if platform else 0,
            bool(platform) and self._of_constants(maker),
            large,
            large > 1 and self._needed_between(value, used),
        )
        if key not in self._alike:
            self._alike[key] = self._asked(value, maker, made_from, names, key[-7:])
        return self._alike[key]

    def _asked(
        self, value: int, maker: int, made_from: int, names: Sequence[str], conditions: Sequence[Any]
    ) -> Stored:
        """What the rules say of a value, made by an op of the first operand that no other uses, and used by
        ops of these names."""
        graph, platform = self.graph, self.allocation.platform
        inside, several, moved, read, of_constants, large, between = conditions
        facts: dict[str, tuple[tuple[Any, ...], ...]] = {
            "on": ((platform,),),
            "made_by": ((graph.names[maker],),),
            "made_from": ((graph.plain[made_from] if made_from >= 0 else "",),),
            "used_by": tuple((name,) for name in names),
            "used_inside": ((),) if inside else (),
            "several_uses": ((),) if several else (),
            "one_of_several": ((),) if len(graph.results[maker]) > 1 else (),
            "moved": ((),) if moved else (),
            "read_at": ((read,),) if platform else (),
            "element": ((graph.types[value].element,),),
            "operands": ((min(len(graph.operands[maker]), _MANY),),),
            "of_constants": ((),) if of_constants else (),
            "large_operands": ((large,),) if platform else (),
            "needed_between": ((),) if between else (),
        }
        op = graph.ops[maker]
        if self._rules.say("described", op.name):
            described = describe(op, False, {}, self._told)
            facts |= {name: tuple(described.get(name, ())) for name in _TOLD}
            taken = (graph.types[operand].elements for operand in graph.operands[maker])
            facts["elements_taken"] = ((max(taken),),)
        return self._rules.stored(tuple(facts.items()))

    def _large(self, op: int, result: int) -> int:
        """The number of operands with the rank of the result that are not broadcasts."""
        graph, say = self.graph, self._rules.say
        rank, taken = graph.types[result].true_rank, graph.operands[op]
        makers = (graph.definers[value] for value in taken if graph.types[value].true_rank >= rank)
        return sum(1 for maker in makers if maker < 0 or not say("broadcasts", graph.plain[maker]))

    def _needed_between(self, value: int, users: Sequence[int]) -> bool:
        """Whether one of several users also takes what is made from the value by way of a stored one."""
        taken = self.graph.operands
        return len(users) > 1 and any(
            self._is_behind(other, value) for user in users for other in taken[user] if other != value
        )

    def _is_behind(self, later: int, value: int) -> bool:
        """Whether a value is made from another one by way of a stored one, or is one that is stored."""
        graph, seen, waiting = self.graph, {value}, [later]
        while waiting:
            each = waiting.pop()
            maker = graph.definers[each]
            if each in seen or maker < 0 or not graph.needs(maker, graph.definers[value]):
                continue
            seen.add(each)
            how = self.at(each)
            if how.stored and not how.again:
                return True
            waiting += graph.operands[maker]
        return False

    def _moved(self, op: int, value: int) -> bool:
        """Whether a value is in another memory than its operand."""
        on = self.on_host
        if not on:
            return False
        operation = self.graph.ops[op]
        there = operation.results[value - self.graph.results[op].start] in on
        return any((taken in on) != there for taken in operation.operands)

    def _of_constants(self, op: int) -> bool:
        """Whether the operands of an op are part of the program, or computed from such values, or broadcasts
        of such values."""
        left, none, graph = [op], (False, False), self.graph
        while left:
            last = left[-1]
            taken = [graph.definers[value] for value in graph.operands[last]]
            waiting = [maker for maker in taken if maker >= 0 and maker not in self._constants]
            if waiting and min(taken) >= 0:
                left += waiting
                continue
            constants = [none if maker < 0 else self._constants.get(maker, none) for maker in taken]
            whole = bool(constants) and all(map(any, constants))
            of_constants = whole and any(constant for constant, _ in constants)
            name = graph.plain[last]
            broadcasts = whole and self._rules.say("broadcasts", name)
            self._constants[last] = self._rules.part(name, of_constants), broadcasts
            left.pop()
        return of_constants

    def _users(self, value: int) -> list[int]:
        """The ops in the block of a value that use it, themselves or in their regions."""
        if value not in self._users_of:
            used_by, plain, say = self.graph.users(value), self.graph.plain, self._rules.say
            platform = self.allocation.platform
            if any(say("reduces_at_once", plain[user], platform) for user in used_by):
                users = dict[int, None]()
                for user in used_by:
                    users[user] = None
                    users.update(dict.fromkeys(self._reducing_again(user)))
                used_by = list(users)
            self._users_of[value] = used_by
        return self._users_of[value]

    def _reducing_again(self, user: int) -> Iterator[int]:
        """The ops that reduce the result of a reduction in the same way. They read its operand, if that is
        stored itself."""
        graph = self.graph
        op, results = graph.ops[user], graph.results[user]
        if len(results) != 1 or graph.used_once(results[0]):
            return
        if self._rules.say("reduces_at_once", op.name, self.allocation.platform):
            for again in self._users(results[0]):
                other = graph.ops[again]
                if other.name == op.name and graph.operands[again][0] == results[0] and _alike(op, other):
                    yield again

    def _called(self, user: int) -> str:
        """The name of a user, or of the op that it runs as."""
        results = self.graph.results[user]
        return (len(results) and self._known[results[0]].runs_as) or self.graph.names[user]

    def _read(self, value: int) -> int:
        """The number of places at which a value that is not stored is read for one element of a loop's
        result. Ops of one shape read it at one place, and each op of another shape at one of its own."""
        graph, stored, readers = self.graph, self._known, dict[int, set[int]]()
        shape, maker = graph.types[value].shape, graph.definers[value]
        for user in self._users(value):
            for result in graph.results[user]:
                how = stored[result]
                here = how.where or graph.types[result].shape == shape
                if how.stored:
                    readers.setdefault(user, set()).add(user)
                    continue
                for loop, ops in self._readers[result].items():
                    there = readers.setdefault(loop, set())
                    if here:
                        there |= ops
                    else:
                        there.add(user)
        self._readers[value] = readers
        most = 0
        for loop, ops in readers.items():
            times = sum([self._times.get((loop, op), 1) for op in ops])
            self._times[loop, maker] = times
            most = max(most, times)
        return most


def _alike(one: Any, other: Any) -> bool:
    """Whether two ops combine elements in the same way, from the same initial value."""
    return bool(one.operands[1] == other.operands[1] and combination(one) == combination(other))


class Stores:
    """The answers of ``rules/cost/storing.dl`` about ops with these traits."""

    def __init__(self, traits: OpTraits) -> None:
        program = shipped("cost/storing")
        self._solver = program.solver(traits.given_to(program))
        self._stored: dict[Any, Stored] = {}
        self._said: dict[tuple[str, str, str], bool] = {}
        self._parts: dict[tuple[str, bool], bool] = {}

    def stored(self, facts: tuple[tuple[str, Any], ...]) -> Stored:
        """How a value with these facts is stored."""
        if facts not in self._stored:
            self._stored[facts] = _stored(self._solver.solve(dict(facts)))
        return self._stored[facts]

    def say(self, relation: str, name: str, platform: str = "") -> bool:
        """Whether a relation holds for results of ops of a name, whatever their operands, with a platform's
        compiler: such as "picks" and "worth_moving"."""
        key = relation, name, platform
        if key not in self._said:
            facts = {"on": [(platform,)], "made_by": [(name,)]}
            self._said[key] = bool(self._solver.solve(facts, [relation])[relation])
        return self._said[key]

    def part(self, name: str, of_constants: bool) -> bool:
        """Whether the result of an op of a name is part of the program, whatever its operands."""
        key = name, of_constants
        if key not in self._parts:
            facts: dict[str, list[tuple[Any, ...]]] = {"on": [("cpu",)], "made_by": [(name,)]}
            facts["of_constants"] = [()] if of_constants else []
            self._parts[key] = bool(self._solver.solve(facts, ["apart"])["apart"])
        return self._parts[key]


@lru_cache(maxsize=16)
def stores(traits: OpTraits) -> Stores:
    """The rules for ops with these traits. Answers are kept."""
    return Stores(traits)


def _stored(answers: Mapping[str, Any]) -> Stored:
    names = ("in_place", "apart", "loop", "reads_where_read", "of_its_shape", "computed_again", "sums")
    in_place, apart, loop, where, shape, again, sums = (bool(answers[name]) for name in names)
    ((runs_as,),), ((beside_sums,),) = answers["runs_as"] or [("",)], answers["beside_sums"] or [(0,)]
    same = 0 if answers["renamed"] else None
    return Stored(
        bool(answers["stored"]), same, in_place, apart, loop, where, runs_as, shape, again, sums, beside_sums
    )
