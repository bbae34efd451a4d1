"""Hypothesis: random constraints, calls and ops with blocks of ops, and the list of all random ops."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from . import random_ops as ops
from .random_blocks import Block, Manual, Value
from .random_library import LIBRARY
from .random_shardings import Boundary, SubAxis, sharding


def fill(block: Block, most: int) -> None:
    """Writes up to `most` random ops; those with large regions not too deep."""
    ops, region_ops = (FLOWING, FLOWING_REGIONS) if block.module.manual else (OPS, REGION_OPS)
    ops = (*ops, *region_ops) if block.depth < 5 else ops
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
    """A value joins a group, but in two places Shardy does not keep the members of a group alike.

    At the boundary of a manual computation, where anything flows in or out, it gives the other members the
    manual axes inside, or takes them away outside. And what flows into an argument of a loop does not
    reach the others, while what they get reaches the argument.
    """
    x = b.pick()
    if x and x.name not in b.module.ungrouped:
        around = b.manual.number if b.manual else 0
        group = b.number(0, 2)
        if b.module.groups.setdefault((around, group), x.shape) == x.shape:
            b.emit("sdy.sharding_group", [x], [], f"group_id = {around * 3 + group} : i64")


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
    fitting = [f for f in b.module.functions if b.manual is None or b.manual.admits(f)]
    if not fitting:
        return
    function = b.choose(fitting)
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
    for region in (condition, body):
        b.module.ungrouped.update(v.name for v in region.values[len(b.values) :])
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


def manual_computation(b: Block) -> None:
    """A computation on shards along some axes of a mesh; the others are free."""
    meshes = [b.manual.mesh] if b.manual else [m for m in b.module.meshes if not m.maximal]
    mesh = b.choose(meshes)
    around = b.manual.axes if b.manual else frozenset()
    left = [SubAxis(i, name, 1, size, True) for i, (name, size) in enumerate(mesh.axes) if name not in around]
    if not left:
        return
    axes = [left[i] for i in b.subset(range(len(left)), 1)]
    names = around.union(axis.name for axis in axes)

    def boundary(shape: Sequence[int], *, inwards: bool) -> tuple[str, tuple[int, ...]]:
        """The sharding of an operand or result, and its shape on the other side."""
        sizes = list(shape)
        first: list[list[SubAxis]] = [[] for _ in sizes]
        rest = []
        for axis in b.order(range(len(axes))):
            size = axes[axis].size
            fitting = [d for d, n in enumerate(sizes) if (n % size == 0 if inwards else n * size <= 64)]
            if not fitting or b.flip():
                rest.append(axes[axis])
                continue
            d = b.choose(fitting)
            first[d].append(axes[axis])
            sizes[d] = sizes[d] // size if inwards else sizes[d] * size
        text = sharding(
            b.draw,
            [mesh],
            len(shape),
            priorities=b.kept is not None,
            bound=names,
            boundary=Boundary(first, rest, bare=b.flip()),
        )
        return f"<{text}>", tuple(sizes)

    operands = [v for v in (b.pick() for _ in range(b.number(1, 4))) if v]
    takes = [boundary(v.shape, inwards=True) for v in operands]
    body = b.region([(shape, v.element) for v, (_, shape) in zip(operands, takes, strict=True)], closed=True)
    body.manual = Manual(mesh, names, next(b.module.bodies))
    b.module.ungrouped.update(v.name for v in body.values)
    fill(body, 6)
    produced = [v for v in body.values if v.element == "f32"]
    returned = [b.choose(produced[::-1]) for _ in range(b.number(1, 3))]
    gives = [boundary(v.shape, inwards=False) for v in returned]
    listing = ", ".join(f'"{axis.name}"' for axis in axes)
    properties = (
        f"in_shardings = #sdy.sharding_per_value<[{', '.join(text for text, _ in takes)}]>, "
        f"manual_axes = #sdy<manual_axes{{{listing}}}>, "
        f"out_shardings = #sdy.sharding_per_value<[{', '.join(text for text, _ in gives)}]>"
    )
    results = [(shape, "f32") for _, shape in gives]
    region = body.finish(returned, "sdy.return")
    made = b.emit("sdy.manual_computation", operands, results, properties, regions=[region], bare=True)
    b.module.ungrouped.update(v.name for v in made)
    if b.kept is not None:
        b.kept += made


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
REGION_OPS: tuple[ops.Op, ...] = (while_, case, manual_computation)
# Between manual computations: little but what shardings flow through.
FLOWING: tuple[ops.Op, ...] = (
    ops.unary,
    ops.binary,
    ops.binary,
    ops.transpose,
    ops.broadcast,
    ops.dot_general,
    ops.dot_general,
    ops.reduce,
    ops.constant,
    sharding_constraint,
    sharding_group,
    optimization_barrier,
    call,
)
FLOWING_REGIONS: tuple[ops.Op, ...] = (*[manual_computation] * 4, while_, case)
