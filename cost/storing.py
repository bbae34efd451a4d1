"""The values of a program that are stored in memory, by ``rules/cost/storing.dl``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import prod
from typing import Any

from jaxlib.mlir import ir

from ..partition.finishing.combining import combination
from ..program.mlir.modules import called
from ..program.signature import Told, describe
from ..rulebook.shipped import shipped
from ..rulebook.traits import OpTraits
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
    """How the values of one module are stored with this allocation, and the memory that they take. Values
    ``on_host`` take the host's; with ``of_host`` only these count."""

    def __init__(
        self,
        allocation: Allocation,
        traits: OpTraits,
        on_host: Collection[Any] = (),
        *,
        of_host: bool = False,
    ) -> None:
        self.allocation, self.traits = allocation, traits
        self.on_host, self.of_host = on_host, of_host
        self._rules = stores(traits)
        self._told = Told()
        self._known: dict[Any, Stored] = {}
        self._readers: dict[Any, dict[Any, set[Any]]] = {}  # of a value: in a loop the ops that say where
        self._users_of: dict[Any, dict[Any, None]] = {}
        self._times: dict[tuple[Any, Any], int] = {}  # the times that a loop computes an op for an element
        self._constants: dict[
            Any, tuple[bool, bool]
        ] = {}  # whether ops make such, and of such are broadcasts

    def of(self, value: Any) -> Stored:
        """How a value of an op is stored."""
        left = [value]
        while left:  # how a value is stored depends on its users
            last = left[-1]
            results = () if last in self._known else (r for user in self._users(last) for r in user.results)
            waiting = [result for result in results if result not in self._known]
            left += waiting
            if not waiting:
                left.pop()
                if last not in self._known:
                    self._known[last] = self._of(last)
        return self._known[value]

    def size(self, value: Any) -> int:
        """The bytes that a value takes of the memory that counts."""
        there = (value in self.on_host) == self.of_host
        return self.allocation.size(str(value.type)) if there else 0

    def of_sums(self, value: Any) -> bool:
        """Whether a value is not stored for its users, but partial sums for it are."""
        return not isinstance(value.owner, ir.Block) and self.of(value).sums

    def memory_of(self, value: Any) -> Any:
        """The value whose memory a value shares: itself, or an operand of its op."""
        while not isinstance(value.owner, ir.Block):
            same = self.of(value).same
            if same is None:
                break
            operand = value.owner.operands[same]
            if not (isinstance(operand.owner, ir.Block) or self.of(operand).stored):
                break
            value = operand
        return value

    def inputs(self, value: Any) -> Iterator[Any]:
        """The operands of the op that makes a value, and those of ops that are fused into it, and not stored.
        Operands of another shape are omitted if the value cannot be in their place."""
        left, seen, shape = list(value.owner.operands), set[Any](), self.of(value).shape
        while left:
            taken = left.pop(0)
            operand = self.memory_of(taken)
            # Products may have the same sizes in another order: they are computed in the wanted order.
            if operand in seen or (shape and sorted(_shape(operand)) != sorted(_shape(taken))):
                continue
            seen.add(operand)
            yield operand
            if not isinstance(operand.owner, ir.Block):
                how = self.of(operand)
                if how.in_place and not how.stored:
                    left += operand.owner.operands

    def _of(self, value: Any) -> Stored:
        maker, used = value.owner.operation, self._users(value)
        uses = {use.owner.operation for use in value.uses}
        if self.traits.lowering(maker.name) == "loop" and unchanged(maker, value.result_number):
            return Stored(True, value.result_number, False)
        alone = next(filter(used_once, maker.operands), None)
        made_from = "" if alone is None or isinstance(alone.owner, ir.Block) else alone.owner.operation.name
        facts: dict[str, tuple[tuple[Any, ...], ...]] = {
            "on": ((self.allocation.platform,),),
            "made_by": ((called(maker),),),
            "made_from": ((made_from,),),
            "used_by": tuple((name,) for name in sorted({self._called(user) for user in uses & used.keys()})),
            "used_inside": ((),) if uses - used.keys() else (),
            "several_uses": ((),) if len(used) > 1 else (),
            "one_of_several": ((),) if len(maker.results) > 1 else (),
            "moved": ((),) if self._moved(value) else (),
            "read_at": ((min(self._read(value), _OFTEN),),) if self.allocation.platform else (),
            "element": ((element_of(value),),),
            "operands": ((min(len(maker.operands), _MANY),),),
            "of_constants": ((),) if self.allocation.platform and self._of_constants(maker) else (),
            "large_operands": ((min(self._large(maker, value), 2),),) if self.allocation.platform else (),
        }
        if self._rules.say("described", maker.name):
            told = describe(maker, False, {}, self._told)
            facts |= {name: tuple(told.get(name, ())) for name in _TOLD}
            facts["elements_taken"] = ((max(prod(_shape(operand)) for operand in maker.operands),),)
        return self._rules.stored(tuple(facts.items()))

    def _large(self, op: Any, result: Any) -> int:
        """The number of operands with the rank of the result that are not broadcasts."""
        rank, say = _true_rank(result), self._rules.say
        return sum(
            1
            for value in op.operands
            if _true_rank(value) >= rank
            and (isinstance(value.owner, ir.Block) or not say("broadcasts", value.owner.operation.name))
        )

    def _moved(self, value: Any) -> bool:
        """Whether a value is in another memory than its operand."""
        on = self.on_host
        return bool(on) and any((taken in on) != (value in on) for taken in value.owner.operands)

    def _of_constants(self, op: Any) -> bool:
        """Whether the operands of an op are part of the program, or computed from such values, or broadcasts
        of such values."""
        left, none = [op], (False, False)
        while left:
            last = left[-1]
            taken = [None if isinstance(v.owner, ir.Block) else v.owner.operation for v in last.operands]
            makers = [maker for maker in taken if maker is not None]
            waiting = [maker for maker in makers if maker not in self._constants]
            if waiting and len(makers) == len(taken):
                left += waiting
                continue
            known = [none if maker is None else self._constants.get(maker, none) for maker in taken]
            whole = bool(known) and all(map(any, known))
            of_constants = whole and any(constant for constant, _ in known)
            broadcasts = whole and self._rules.say("broadcasts", last.name)
            self._constants[last] = self._rules.part(last.name, of_constants), broadcasts
            left.pop()
        return of_constants

    def _users(self, value: Any) -> dict[Any, None]:
        """The ops in the block of a value that use it, themselves or in their regions."""
        if value not in self._users_of:
            block, found = value.owner.operation.block, dict[Any, None]()
            for use in value.uses:
                user = use.owner.operation
                while user.block != block:
                    user = user.parent.operation
                found[user] = None
                found.update(dict.fromkeys(self._reducing_again(user)))
            self._users_of[value] = found
        return self._users_of[value]

    def _reducing_again(self, user: Any) -> Iterator[Any]:
        """The ops that reduce the result of a reduction in the same way. They read its operand, if that is
        stored itself."""
        at_once = self._rules.say("reduces_at_once", user.name, self.allocation.platform)
        if at_once and len(user.results) == 1 and not used_once(user.results[0]):
            for again in self._users(user.results[0]):
                if again.name == user.name and again.operands[0] == user.results[0] and _alike(user, again):
                    yield again

    def _called(self, user: Any) -> str:
        """The name of a user, or of the op that it runs as."""
        return (user.results and self._known[user.results[0]].runs_as) or called(user)

    def _read(self, value: Any) -> int:
        """The number of places at which a value that is not stored is read for one element of a loop's
        result. Ops of one shape read it at one place, and each op of another shape at one of its own."""
        shape, type_, found = _shape(value), value.type, defaultdict[Any, set[Any]](set)
        for user in self._users(value):
            for result in user.results:
                how = self._known[result]
                here = how.where or result.type == type_ or _shape(result) == shape
                for loop, ops in ({user: {user}} if how.stored else self._readers[result]).items():
                    found[loop].update(ops if here else {user})
        self._readers[value] = found
        for loop, ops in found.items():
            self._times[loop, value.owner] = sum(self._times.get((loop, op), 1) for op in ops)
        return max((self._times[loop, value.owner] for loop in found), default=0)


def _shape(value: Any) -> list[int]:
    type_ = value.type
    return list(type_.shape) if isinstance(type_, ir.RankedTensorType) else []


def _true_rank(value: Any) -> int:
    return sum(1 for size in _shape(value) if size > 1)


def element_of(value: Any) -> str:
    """The element type of a tensor, as MLIR writes it; empty for other values."""
    type_ = value.type
    return str(type_.element_type) if isinstance(type_, ir.RankedTensorType) else ""


def used_once(value: Any) -> bool:
    """Whether a value has one use; others may have thousands."""
    return sum(1 for _ in islice(value.uses, 2)) == 1


def _alike(one: Any, other: Any) -> bool:
    """Whether two ops combine elements in the same way, from the same initial value."""
    return bool(one.operands[1] == other.operands[1] and combination(one) == combination(other))


def unchanged(loop: Any, number: int) -> bool:
    """Whether a loop passes a carried value on unchanged."""
    block = loop.regions[1].blocks[0]
    *_, end = block.operations
    return bool(end.operands[number] == block.arguments[number])


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


def _stored(said: Mapping[str, Any]) -> Stored:
    names = ("in_place", "apart", "loop", "reads_where_read", "of_its_shape", "computed_again", "sums")
    in_place, apart, loop, where, shape, again, sums = (bool(said[name]) for name in names)
    ((runs_as,),), ((beside_sums,),) = said["runs_as"] or [("",)], said["beside_sums"] or [(0,)]
    same = 0 if said["renamed"] else None
    return Stored(
        bool(said["stored"]), same, in_place, apart, loop, where, runs_as, shape, again, sums, beside_sums
    )
