"""The kernels that XLA for GPUs makes of ops, by ``rules/cost/fusing.dl``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from ..rulebook.traits import OpTraits
from .fusing import fusing
from .graph import OpGraph

_SEVERAL = 3  # the largest number of kernels that are counted
_GIVEN_AWAY = ("tf.aliasing_output", "jax.buffer_donor")
_LARGE = 1024  # elements from which on reading a value only once is worthwhile


@dataclass(eq=False)
class Kernel:
    """A kernel: the op ``root`` that says how it is computed, its ``form``, the other ops in it, last first;
    how many ``elements`` it computes, and ``first`` and ``last``, its outermost ops in the block. Ops and
    values are called by their numbers."""

    root: int
    form: str
    elements: int
    first: int
    last: int
    ops: list[int] = field(default_factory=list)
    given: list[int] = field(default_factory=list)  # the values that it writes


class Move(NamedTuple):
    """Bytes of a value that a kernel moves: the op that does, and the slot whose parts say how many of them
    each device moves."""

    op: int
    slot: int
    bytes: int


class Moved(NamedTuple):
    """The values that a kernel reads, by number; what it writes; and operands that must not be overwritten,
    which are copied first."""

    read: dict[int, Move]
    written: tuple[Move, ...]
    copied: tuple[Move, ...]


@dataclass(frozen=True)
class Amounts:
    """The work of a kernel: the bytes of each value that it reads, writes, or copies first; how often it
    computes ops of a name, for how many elements of a type; its operands that loops make; and whether it is a
    product that is ``followed`` by a loop over its elements, the only user, or is such a loop."""

    read: tuple[int, ...]
    written: tuple[int, ...]
    copied: tuple[int, ...]
    computed: tuple[tuple[str, str, int, int], ...]
    loops: tuple[int, ...]
    followed: bool
    after_product: bool


class Kernels:
    """The kernels of the blocks of modules."""

    def __init__(self, traits: OpTraits, graph: OpGraph) -> None:
        self.graph = graph
        self._traits = traits
        self._rules = fusing(traits)
        self._kernels: dict[int, Kernel | None] = {}  # by their roots
        self._inside: dict[int, list[Kernel]] = {}  # the kernels that an op is computed in
        self._renamed = set[int]()  # ops that return their operand under another type
        self._blocks = set[int]()
        self._having: dict[int, dict[int, list[Kernel]]] = {}  # by region

    def of(self, op: int) -> Kernel | None:
        """The kernel with this root; None for an op that is computed in other kernels, or not at all."""
        region = self.graph.regions[op]
        if region not in self._blocks:
            self._blocks.add(region)
            self._find(self.graph.block(op))
        return self._kernels.get(op)

    def having(self, op: int) -> list[Kernel]:
        """The kernels that an op is computed in."""
        self.of(op)
        region = self.graph.regions[op]
        if region not in self._having:
            having: dict[int, list[Kernel]] = {}
            for kernel in filter(None, map(self._kernels.get, self.graph.block(op))):
                for each in dict.fromkeys((kernel.root, *kernel.ops)):
                    having.setdefault(each, []).append(kernel)
            self._having[region] = having
        return self._having[region].get(op, [])

    def apart(self, op: int) -> Kernel | None:
        """The kernel that a reduction would be that is computed in another one; None for other ops."""
        form, graph = self._rules.form(self.graph.names[op]), self.graph
        if form != "reduction" or all(kernel.root == op for kernel in self.having(op)):
            return None
        return Kernel(
            op, form, graph.types[graph.operands[op][0]].elements, op, op, given=[*graph.results[op]]
        )

    def moved(self, kernel: Kernel) -> Moved:
        """The bytes that a kernel moves, each value once."""
        graph, types, rules = self.graph, self.graph.types, self._rules
        inside, read, copied = {kernel.root, *kernel.ops}, dict[int, Move](), list[Move]()
        for op in (kernel.root, *kernel.ops):
            in_place, taken = rules.in_place(graph.names[op]), graph.operands[op]
            reads_part = self._traits.touches(graph.plain[op]) == "reads"
            for slot, operand in enumerate(taken):
                value = self._origin(operand)
                if not self._in_memory_for(value, inside):
                    continue
                size, at = types[operand].bytes, slot
                if slot == 0 and in_place:
                    if self._lasting(op):
                        copied.append(Move(op, slot, size))
                    continue
                if slot == 0 and reads_part:
                    made = sum(types[result].bytes for result in graph.results[op])
                    size, at = (made, len(taken)) if made < size else (size, slot)
                if value not in read or read[value].bytes < size:
                    read[value] = Move(op, at, size)
        root, taken = kernel.root, graph.operands[kernel.root]
        if rules.in_place(graph.names[root]) and len(taken) > 1:
            slot = len(taken) - 1 if kernel.form == "scatter" else 1
            return Moved(read, (Move(root, slot, types[taken[slot]].bytes),), tuple(copied))
        written = list[Move]()
        for value in kernel.given:
            if self._needed(value, inside):
                op = graph.definers[value]
                slot = len(graph.operands[op]) + value - graph.results[op].start
                written.append(Move(op, slot, types[value].bytes))
        return Moved(read, tuple(written), tuple(copied))

    def amounts(self, kernel: Kernel, moved: Moved) -> Amounts:
        """The work of a kernel that moves this."""
        graph, computed = self.graph, Counter[Any]()
        inside, values = {kernel.root, *kernel.ops}, [self._origin(v) for v in graph.operands[kernel.root]]
        for op in (kernel.root, *kernel.ops):
            self._count(op, computed)
        loops = [
            number
            for number, value in enumerate(values)
            if self._in_memory_for(value, inside)
            and any(each.form == "loop" for each in self._inside.get(graph.definers[value], ()))
        ]
        names = sorted((name, type_, number, count) for (name, type_, number), count in computed.items())
        return Amounts(
            tuple(sorted(move.bytes for move in moved.read.values())),
            tuple(sorted(move.bytes for move in moved.written)),
            tuple(move.bytes for move in moved.copied),
            tuple(names),
            tuple(loops),
            self._follower(kernel) is not None,
            any(self._follows(value, kernel) for value in moved.read),
        )

    def _in_memory_for(self, value: int, inside: set[int]) -> bool:
        """Whether a kernel reads a value from memory."""
        maker = self.graph.definers[value]
        return maker < 0 or not (maker in inside or self._rules.form(self.graph.names[maker]) == "free")

    def _follower(self, kernel: Kernel) -> Kernel | None:
        """The loop over the elements of a product that is its only user."""
        uses = self.graph.uses[self.graph.results[kernel.root][0]]
        if kernel.form != "product" or len(uses) != 1:
            return None
        ((user, _),) = uses
        users = self._inside.get(user, ())
        if len(users) != 1 or users[0].form != "loop" or users[0].elements != kernel.elements:
            return None
        return users[0]

    def _follows(self, value: int, kernel: Kernel) -> bool:
        """Whether a value is a product with one kernel as its only user."""
        maker = self._kernels.get(self.graph.definers[value])
        return maker is not None and self._follower(maker) is kernel

    def _needed(self, value: int, inside: set[int]) -> bool:
        """Whether the values of a kernel have other users, also under another type."""
        uses = self.graph.uses[value]
        alone = len(inside) == 1 or (self.graph.definers[value] in inside and not uses)
        return alone or any(user not in inside for user, _ in uses)

    def _count(self, op: int, computed: Counter[Any]) -> None:
        """Counts the computation of an op; a reduction counts its body once per element."""
        graph, times, name = self.graph, 1, self.graph.names[op]
        value = graph.results[op][0]
        if self._rules.form(name) == "reduction":
            value, times = graph.operands[op][0], max(graph.ends[op] - op - 2, 1)
        tensor = graph.types[value]
        computed[name, tensor.element, tensor.elements] += times

    def _origin(self, value: int) -> int:
        """The value that another one renames."""
        while (maker := self.graph.definers[value]) in self._renamed:
            value = self.graph.operands[maker][0]
        return value

    def _lasting(self, op: int) -> bool:
        """Whether the first operand of an op is an argument of the program that it may not write over."""
        while (maker := self.graph.maker(op)) in self._renamed:
            op = maker
        return maker < 0 and _lasting(self.graph.ops[op].operands[0])

    def _find(self, block: list[int]) -> None:
        kernels = list[Kernel]()
        kept = set[int]()  # values with other users, also under another type
        for op in reversed(block):
            self._place(op, kept, kernels)
        for kernel in self._merged(kernels[::-1]):
            self._kernels[kernel.root] = kernel

    def _place(self, op: int, kept: set[int], kernels: list[Kernel]) -> None:
        """Puts an op into the kernels of its users, or into one of its own."""
        graph, rules = self.graph, self._rules
        name, results, types = graph.names[op], graph.results[op], graph.types
        form = rules.form(name)
        if form == "free" or not results:
            return
        users, others = self._users(op, kept)
        size = max([types[value].elements for value in results])
        taken = types[graph.operands[op][0]].elements if graph.operands[op] else -1
        if rules.renames(name, self._made_from(op), types[results[0]].rank, size == taken):
            self._renamed.add(op)
            self._inside[op] = users
            if others:
                kept.add(graph.operands[op][0])
            return
        facts: dict[str, Any] = {
            "made_by": ((name,),),
            "elements": ((size,),),
            "kernels": ((min(len(users), _SEVERAL),),),
            "used_by": tuple((how,) for how in sorted({k.form for k in users} | self._in_memory(op))),
            "kept": ((),) if others else (),
        }
        if form == "reduction" and len(users) == 1 and not others:
            (kernel,) = users
            row = _row(graph.ops[op])
            if row and kernel.elements == taken:
                facts["row"] = ((row,),)
                facts["returns"] = tuple((type_,) for type_ in sorted(self._returns(op, taken)))
            if kernel.elements == size:
                facts["follows"] = ((),)
        fused, normalises = rules.fused(tuple(facts.items()))
        if fused:
            self._inside[op] = users
            for kernel in users:
                kernel.ops.append(op)
                if normalises:
                    kernel.form = "rows"
                elif form == "reduction":
                    kernel.ops[-1] = kernel.root
                    kernel.root, kernel.form, kernel.elements = op, form, taken
            return
        kernel = Kernel(op, form, taken if form == "reduction" else size, op, op, given=list(results))
        self._inside[op] = [kernel]
        kernels.append(kernel)

    def _merged(self, kernels: list[Kernel]) -> list[Kernel]:
        """Kernels in program order. Kernels with the same number of elements are merged if one reads the
        other's result, or if both read the same value. They are not if another input of the later one depends
        on the earlier one."""
        merged, makers, readers = list[Kernel](), dict[int, Kernel](), dict[int, Kernel]()
        types = self.graph.types
        for kernel in kernels:
            read = dict.fromkeys(self._read(kernel))
            before = [makers[value] for value in read if value in makers]
            beside = [
                readers[value] for value in read if value in readers and types[value].elements >= _LARGE
            ]
            for one in dict.fromkeys([*before, *beside]):
                taken = [value for value in read if makers.get(value) is one]
                if self._one_kernel(one, kernel, before, taken):
                    if one.form != kernel.form == "reduction":
                        one.root, one.form, kernel.root = kernel.root, kernel.form, one.root
                    one.ops += [kernel.root, *kernel.ops]
                    one.given += kernel.given
                    one.last = kernel.last
                    kernel = one
                    break
            else:
                merged.append(kernel)
            makers |= dict.fromkeys(kernel.given, kernel)
            readers |= dict.fromkeys(read, kernel)
        return merged

    def _one_kernel(self, one: Kernel, other: Kernel, before: list[Kernel], taken: list[int]) -> bool:
        """Whether two kernels are merged. The later one needs the results of those ``before`` it, and reads
        values of the earlier one element by element, and not as rows."""
        return (
            one.elements == other.elements
            and self._rules.merges(one.form)
            and self._rules.merges(other.form)
            and all(each is one or each.last < one.first for each in before)
            and all(self.graph.types[value].elements == one.elements for value in taken)
        )

    def _read(self, kernel: Kernel) -> Iterator[int]:
        inside, definers = {kernel.root, *kernel.ops}, self.graph.definers
        for op in (kernel.root, *kernel.ops):
            for operand in self.graph.operands[op]:
                value = self._origin(operand)
                if definers[value] not in inside:
                    yield value

    def _made_from(self, op: int) -> str:
        """The form of the op that makes the first operand of an op, for it alone."""
        maker = self.graph.maker(op)
        if maker < 0 or not self.graph.used_once(self.graph.operands[op][0]):
            return ""
        return self._rules.form(self.graph.names[maker])

    def _users(self, op: int, kept: set[int]) -> tuple[list[Kernel], bool]:
        """The kernels that use the result of an op, and whether others need it."""
        users, others, regions = dict[Kernel, None](), False, self.graph.regions
        for result in self.graph.results[op]:
            others |= result in kept
            for user, _ in self.graph.uses[result]:
                inside = self._inside.get(user)
                if inside is None or regions[user] != regions[op]:
                    others = True
                else:
                    users.update(dict.fromkeys(inside))
        return list(users), others

    def _in_memory(self, op: int) -> set[str]:
        """Returns "memory" if an op overwrites the result of another one."""
        for result in self.graph.results[op]:
            for user, number in self.graph.uses[result]:
                if number == 0 and self._rules.in_place(self.graph.names[user]):
                    return {"memory"}
        return set()

    def _returns(self, op: int, whole: int) -> set[str]:
        """The types of the values that results become when they have so many elements again."""
        graph = self.graph
        left, types, seen = [*graph.results[op]], set[str](), set[int]()
        while left:
            for user, _ in graph.uses[left.pop()]:
                if user in seen:
                    continue
                seen.add(user)
                for result in graph.results[user]:
                    if graph.types[result].elements == whole:
                        types.add(graph.types[result].element)
                    else:
                        left.append(result)
        return types


def _lasting(value: Any) -> bool:
    """Whether a value is an argument of the program that must not be overwritten."""
    if not isinstance(value.owner, ir.Block):
        return False
    function = value.owner.owner.operation
    if function.name == "sdy.manual_computation":
        return _lasting(function.operands[ir.BlockArgument(value).arg_number])
    if function.name != "func.func":
        return False
    if "arg_attrs" not in function.attributes:
        return True
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[value.arg_number])
    return not any(label in attributes for label in _GIVEN_AWAY)


def _row(op: Any) -> int:
    """The elements of a row that a reduction combines, if rows are innermost; otherwise none."""
    if "dimensions" not in op.attributes:
        return 0
    shape = op.operands[0].type.shape
    reduced = set(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    long = [dim for dim, size in enumerate(shape) if size > 1]
    inner = [dim for dim in long if dim in reduced]
    if not inner or long[len(long) - len(inner) :] != inner:
        return 0
    return prod(shape[dim] for dim in inner)
