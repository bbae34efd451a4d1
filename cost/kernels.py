"""The kernels that XLA for GPUs makes of ops, by ``rules/cost/fusing.dl``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from ..program.elements import size_of
from ..program.mlir.modules import called
from ..rulebook.traits import OpTraits
from .fusing import fusing
from .storing import used_once

_SEVERAL = 3  # the largest number of kernels that are counted
_GIVEN_AWAY = ("tf.aliasing_output", "jax.buffer_donor")
_LARGE = 1024  # elements from which on reading a value only once is worthwhile


@dataclass(eq=False)
class Kernel:
    """A kernel: the ``root`` op, which determines how it is computed; its ``form``; its other ops, last
    first; its number of ``elements``; and ``first`` and ``last``, the places of its outermost ops in the
    block."""

    root: Any
    form: str
    elements: int
    first: int
    last: int
    ops: list[Any] = field(default_factory=list)
    given: list[Any] = field(default_factory=list)  # the values that it writes


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
    """The kernels of the blocks of one module."""

    def __init__(self, traits: OpTraits) -> None:
        self._traits = traits
        self._rules = fusing(traits)
        self._kernels: dict[Any, Kernel | None] = {}  # by their roots
        self._inside: dict[Any, list[Kernel]] = {}  # the kernels that an op is computed in
        self._tensors = Tensors()
        self._renamed = set[Any]()  # ops that return their operand under another type
        self._blocks = set[Any]()

    def of(self, op: Any) -> Kernel | None:
        """The kernel with this root; None for an op that is computed in other kernels, or not at all."""
        block = op.operation.block
        if block not in self._blocks:
            self._blocks.add(block)
            self._find(block)
        return self._kernels.get(op)

    def amounts(self, kernel: Kernel) -> Amounts:
        """The work of a kernel."""
        inside, read, computed = {kernel.root, *kernel.ops}, dict[Any, int](), Counter[Any]()
        copied, loops = list[int](), list[int]()
        written = [self._tensors.of(value).bytes for value in kernel.given if self._needed(value, inside)]
        for op in (kernel.root, *kernel.ops):
            self._count(op, computed)
            in_place = self._rules.in_place(called(op))
            for number, operand in enumerate(op.operands):
                value = self._origin(operand)
                owner = value.owner
                if not isinstance(owner, ir.Block):
                    if owner.operation in inside or self._rules.form(called(owner.operation)) == "free":
                        continue
                    makers = self._inside.get(owner.operation, ())
                    if op == kernel.root and any(maker.form == "loop" for maker in makers):
                        loops.append(number)
                size = self._tensors.of(operand).bytes
                if in_place and number == 0:
                    if _lasting(value):
                        copied.append(size)
                    continue
                if self._traits.touches(op.name) == "reads" and number == 0:
                    size = min(size, sum(self._tensors.of(result).bytes for result in op.results))
                read[value] = max(read.get(value, 0), size)
        root = kernel.root
        if self._rules.in_place(called(root)) and len(root.operands) > 1:
            update = root.operands[len(root.operands) - 1 if kernel.form == "scatter" else 1]
            written = [self._tensors.of(update).bytes]
        names = sorted((name, type_, number, count) for (name, type_, number), count in computed.items())
        return Amounts(
            tuple(sorted(read.values())),
            tuple(sorted(written)),
            tuple(copied),
            tuple(names),
            tuple(loops),
            self._follower(kernel) is not None,
            any(self._follows(value, kernel) for value in read),
        )

    def _follower(self, kernel: Kernel) -> Kernel | None:
        """The loop over the elements of a product that is its only user."""
        if kernel.form != "product" or not used_once(kernel.root.results[0]):
            return None
        user = next(iter(kernel.root.results[0].uses)).owner.operation
        users = self._inside.get(user, ())
        if len(users) != 1 or users[0].form != "loop" or users[0].elements != kernel.elements:
            return None
        return users[0]

    def _follows(self, value: Any, kernel: Kernel) -> bool:
        """Whether a value is a product with one kernel as its only user."""
        if isinstance(value.owner, ir.Block):
            return False
        maker = self._kernels.get(value.owner.operation)
        return maker is not None and self._follower(maker) is kernel

    def _needed(self, value: Any, inside: set[Any]) -> bool:
        """Whether the values of a kernel have other users, also under another type."""
        alone = len(inside) == 1 or (value.owner.operation in inside and not any(True for _ in value.uses))
        return alone or any(use.owner.operation not in inside for use in value.uses)

    def _count(self, op: Any, computed: Counter[Any]) -> None:
        """Counts the computation of an op; a reduction counts what it does with each element."""
        value, times = op.results[0], 1
        if self._rules.form(called(op)) == "reduction":
            value, times = op.operands[0], max(len(op.regions[0].blocks[0].operations) - 1, 1)
        tensor = self._tensors.of(value)
        computed[called(op), tensor.element, tensor.elements] += times

    def _origin(self, value: Any) -> Any:
        """The value that another one renames."""
        while not isinstance(value.owner, ir.Block) and value.owner.operation in self._renamed:
            value = value.owner.operands[0]
        return value

    def _find(self, block: Any) -> None:
        places = {op.operation: place for place, op in enumerate(block.operations)}
        made = list[Kernel]()
        kept = set[Any]()  # values with other users, also under another type
        for op in reversed(list(places)):
            self._place(op, places, kept, made)
        for kernel in self._merged(made[::-1]):
            self._kernels[kernel.root] = kernel

    def _place(self, op: Any, places: dict[Any, int], kept: set[Any], made: list[Kernel]) -> None:
        """Puts an op into the kernels of its users, or into one of its own."""
        name, rules = called(op), self._rules
        form = rules.form(name)
        if form == "free" or not op.results:
            return
        users, others = self._users(op, kept)
        size = max((self._tensors.of(value).elements for value in op.results), default=0)
        keeps_all = len(op.operands) > 0 and size == self._tensors.of(op.operands[0]).elements
        rank = self._tensors.of(op.results[0]).rank
        if rules.renames(name, self._made_from(op), rank, keeps_all):
            self._renamed.add(op)
            self._inside[op] = users
            if others:
                kept.add(op.operands[0])
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
            row = _row(op)
            if row and kernel.elements == self._tensors.of(op.operands[0]).elements:
                facts["row"] = ((row,),)
                types = _returns(op, kernel.elements, self._tensors)
                facts["returns"] = tuple((type_,) for type_ in sorted(types))
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
                    kernel.root, kernel.form = op, form
                    kernel.elements = self._tensors.of(op.operands[0]).elements
            return
        whole = self._tensors.of(op.operands[0]).elements if form == "reduction" else size
        kernel = Kernel(op, form, whole, places[op], places[op], given=list(op.results))
        self._inside[op] = [kernel]
        made.append(kernel)

    def _merged(self, kernels: list[Kernel]) -> list[Kernel]:
        """Kernels in program order. Kernels with the same number of elements are merged if one reads the
        other's result, or both read the same value, unless something that the later one needs depends on the
        earlier one."""
        found, makers, readers = list[Kernel](), dict[Any, Kernel](), dict[Any, Kernel]()
        for kernel in kernels:
            read = dict.fromkeys(self._read(kernel))
            before = [makers[value] for value in read if value in makers]
            large = (value for value in read if self._tensors.of(value).elements >= _LARGE)
            beside = [readers[value] for value in large if value in readers]
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
                found.append(kernel)
            makers |= dict.fromkeys(kernel.given, kernel)
            readers |= dict.fromkeys(read, kernel)
        return found

    def _one_kernel(self, one: Kernel, other: Kernel, before: list[Kernel], taken: list[Any]) -> bool:
        """Whether two kernels are merged. The later one needs the results of those ``before`` it, and reads
        values of the earlier one element by element, and not as rows."""
        return (
            one.elements == other.elements
            and self._rules.merges(one.form)
            and self._rules.merges(other.form)
            and all(each is one or each.last < one.first for each in before)
            and all(self._tensors.of(value).elements == one.elements for value in taken)
        )

    def _read(self, kernel: Kernel) -> Iterator[Any]:
        inside = {kernel.root, *kernel.ops}
        for op in (kernel.root, *kernel.ops):
            for operand in op.operands:
                value = self._origin(operand)
                if isinstance(value.owner, ir.Block) or value.owner.operation not in inside:
                    yield value

    def _made_from(self, op: Any) -> str:
        """The form of the op that makes the first operand of an op, for it alone."""
        value = op.operands[0] if len(op.operands) else None
        if value is None or isinstance(value.owner, ir.Block) or not used_once(value):
            return ""
        return self._rules.form(called(value.owner.operation))

    def _users(self, op: Any, kept: set[Any]) -> tuple[list[Kernel], bool]:
        """The kernels that use the result of an op, and whether others need it."""
        found, others = dict[Kernel, None](), False
        for result in op.results:
            others |= result in kept
            for use in result.uses:
                user = use.owner.operation
                inside = self._inside.get(user)
                if inside is None or user.block != op.block:
                    others = True
                else:
                    found.update(dict.fromkeys(inside))
        return list(found), others

    def _in_memory(self, op: Any) -> set[str]:
        """Returns "memory" if an op overwrites the result of another one."""
        for result in op.results:
            for use in result.uses:
                if use.operand_number == 0 and self._rules.in_place(called(use.owner.operation)):
                    return {"memory"}
        return set()


class Tensor(NamedTuple):
    """A type: its number of elements, their type, its bytes, and its dimensions. Empty for types that are not
    tensors."""

    elements: int = 0
    element: str = ""
    bytes: int = 0
    rank: int = 0


class Tensors(dict[Any, Tensor]):
    """The types of values, each read once."""

    def of(self, value: Any) -> Tensor:
        """The type of a value."""
        type_ = value.type
        found = self.get(type_)
        if found is None:
            found = Tensor()
            if isinstance(type_, ir.RankedTensorType):
                shape = type_.shape
                found = Tensor(prod(shape), str(type_.element_type), size_of(str(type_)), len(shape))
            self[type_] = found
        return found


def _lasting(value: Any) -> bool:
    """Whether a value is an argument of the program that must not be overwritten."""
    if not isinstance(value.owner, ir.Block):
        return False
    function = value.owner.owner.operation
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


def _returns(op: Any, whole: int, tensors: Tensors) -> set[str]:
    """The types of results that are broadcast to this many elements again."""
    left, found, seen = list(op.results), set[str](), set[Any]()
    while left:
        for use in left.pop().uses:
            user = use.owner.operation
            if user in seen or not user.results:
                continue
            seen.add(user)
            for result in user.results:
                if tensors.of(result).elements == whole:
                    found.add(tensors.of(result).element)
                else:
                    left.append(result)
    return found
