"""Hypothesis: random constraints, calls and ops with blocks of ops, and the list of all random ops."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from . import random_ops as ops
from .random_blocks import Block, Value
from .random_library import LIBRARY


def fill(block: Block, most: int) -> None:
    """Writes up to `most` random ops; those with large regions not too deep."""
    ops = (*OPS, *REGION_OPS) if block.depth < 3 else OPS
    for _ in range(block.number(1, 4)):
        for op in block.draw(st.lists(st.sampled_from(ops), min_size=1, max_size=most // 3)):
            op(block)


def sharding_constraint(b: Block) -> None:
    x = b.pick()
    if x:
        result = Value(b.name(), x.shape, constant=x.constant)
        b.module.used.add(x.name)
        properties = f"sharding = #sdy.sharding{b.sharding(result)}"
        b.write(f'{result} = "sdy.sharding_constraint"({x}) <{{{properties}}}> : ({x.type}) -> {x.type}')
        b.values.append(result)


def sharding_group(b: Block) -> None:
    x = b.pick()
    if x:
        group = b.number(0, 2)
        if b.module.groups.setdefault(group, x.shape) == x.shape:
            b.emit("sdy.sharding_group", [x], [], f"group_id = {group} : i64")


def optimization_barrier(b: Block) -> None:
    operands = [v for v in (b.pick() for _ in range(b.number(1, 3))) if v]
    b.emit("stablehlo.optimization_barrier", operands, [(v.shape, "f32") for v in operands])


def custom_call(b: Block) -> None:
    """A custom call with a random sharding rule."""
    operands = [v for v in (b.pick(rank=1) for _ in range(b.number(1, 2))) if v]
    if not operands:
        return
    sizes: list[int] = []

    def factors(n: int, used: set[int]) -> list[int]:
        """The factors of a dimension of size `n`: one, or the two into which it is split."""
        divisors = [d for d in range(2, n) if n % d == 0]
        first = b.choose(divisors) if divisors and b.flip(4) else n
        found = []
        for size in (first, n // first) if first < n else (n,):
            known = [f for f, s in enumerate(sizes) if s == size and f not in used]
            if not known or b.flip(3):
                sizes.append(size)
                known = [len(sizes) - 1]
            found.append(b.choose(known))
            used.add(found[-1])
        return found

    def mapped(shape: Sequence[int]) -> list[list[int]]:
        used: set[int] = set()
        return [factors(n, used) for n in shape]

    takes = [mapped(v.shape) for v in operands]
    results = [b.choose(operands).shape[b.number(0, 1) :] for _ in range(b.number(1, 2))]
    gives = [mapped(shape) for shape in results]
    produced = {f for dims in gives for dim in dims for f in dim}
    kinds: dict[str, list[int]] = {"reduction": [], "need_replication": [], "permutation": []}
    for f in range(len(sizes)):
        kind = b.choose(("", "", *kinds))
        if kind and not (kind == "reduction" and f in produced):
            kinds[kind].append(f)
    kinds["blocked_propagation"] = [f for f in range(len(sizes)) if b.flip(8)]
    symbols = [chr(ord("i") + f) if f < 18 else f"z_{f - 17}" for f in range(len(sizes))]

    def written(tensors: list[list[list[int]]]) -> str:
        return ", ".join(
            f"[{', '.join(''.join(symbols[f] for f in dim) for dim in dims)}]" for dims in tensors
        )

    rule = f"({written(takes)})->({written(gives)}) "
    rule += "{" + ", ".join(f"{s}={n}" for s, n in zip(symbols, sizes, strict=True)) + "}"
    for kind, members in kinds.items():
        rule += f" {kind}={{{', '.join(symbols[f] for f in members)}}}" if members else ""
    b.emit(
        "stablehlo.custom_call",
        operands,
        [(shape, "f32") for shape in results],
        'call_target_name = "mystery"',
        attributes=[f"sdy.sharding_rule = #sdy.op_sharding_rule<{rule}, custom>"],
    )


def call(b: Block) -> None:
    """A call of a function written before; its arguments are made to fit."""
    if not b.module.functions:
        return
    function = b.choose(b.module.functions)
    operands = [b.pick(a.shape) or b.constant(a.shape) for a in function.arguments]
    b.emit("func.call", operands, [(r.shape, "f32") for r in function.results], f"callee = @{function.name}")


def while_(b: Block) -> None:
    """A loop that counts in its first value and carries one or two others."""
    carried = [v for v in (b.pick() for _ in range(b.number(1, 2))) if v]
    start = b.constant((), "i32")
    types = [(v.shape, v.element) for v in (start, *carried)]
    condition = b.region(types)
    limit = condition.constant((), "i32", 8)
    direction = "comparison_direction = #stablehlo<comparison_direction LT>"
    counter = condition.values[len(b.values)]
    less = condition.emit("stablehlo.compare", [counter, limit], [((), "i1")], direction, bare=True)
    body = b.region(types)
    counter = body.values[len(b.values)]
    one = body.constant((), "i32", 1)
    following = body.emit("stablehlo.add", [counter, one], [((), "i32")])
    fill(body, 3)
    following += [body.pick(v.shape) or v for v in carried]
    b.emit(
        "stablehlo.while", [start, *carried], types, regions=[condition.finish(less), body.finish(following)]
    )


def case(b: Block) -> None:
    """Two branches that return values of the same types."""
    like = [v for v in (b.pick() for _ in range(b.number(1, 2))) if v]
    index = b.constant((), "i32")
    branches = []
    for _ in range(2):
        branch = b.region()
        fill(branch, 3)
        branches.append(branch.finish([branch.pick(v.shape) or v for v in like]))
    b.emit("stablehlo.case", [index], [(v.shape, "f32") for v in like], regions=branches)


OPS: tuple[ops.Op, ...] = (
    ops.unary,
    ops.binary,
    ops.select,
    ops.clamp,
    ops.transpose,
    ops.reshape,
    ops.broadcast,
    ops.concatenate,
    ops.slice_,
    ops.dynamic_slice,
    ops.dynamic_update_slice,
    ops.pad,
    ops.reverse,
    ops.iota,
    ops.constant,
    ops.dot_general,
    ops.dot_general,
    ops.convolution,
    ops.reduce,
    ops.reduce_window,
    ops.sort,
    ops.take,
    ops.scatter,
    ops.convert,
    ops.random_bits,
    ops.reduce_pair,
    ops.select_and_scatter,
    ops.batched_take,
    sharding_constraint,
    sharding_constraint,
    sharding_group,
    optimization_barrier,
    custom_call,
    custom_call,
    call,
    call,
    *LIBRARY,
)
REGION_OPS: tuple[ops.Op, ...] = (while_, case)
