"""Hypothesis: random ops. Each function writes one op into a block, with operands that are in scope.

A function writes nothing where the block has no fitting operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from hypothesis import strategies as st

from .random_blocks import Block, Value

Op = Callable[[Block], object]
RANK = 5  # no op makes a tensor of a higher rank

UNARY = ("negate", "tanh", "exponential", "abs")
BINARY = ("add", "multiply", "subtract", "maximum")


def integers(items: Sequence[int]) -> str:
    """A list of integers as an attribute."""
    return f"array<i64: {', '.join(map(str, items))}>" if items else "array<i64>"


def fill(block: Block, most: int) -> None:
    """Writes up to `most` random ops; those with large regions not too deep."""
    ops = (*OPS, *REGION_OPS) if block.depth < 3 else OPS
    for op in block.draw(st.lists(st.sampled_from(ops), min_size=1, max_size=most)):
        op(block)


# ---- Elementwise -------------------------------------------------------------------------------------------


def unary(b: Block) -> None:
    x = b.pick()
    if x:
        b.emit(f"stablehlo.{b.choose(UNARY)}", [x], [(x.shape, "f32")])


def binary(b: Block) -> None:
    x = b.pick()
    if x:
        y = b.constant(x.shape) if b.flip(6) else b.pick(x.shape)
        assert y
        b.emit(f"stablehlo.{b.choose(BINARY)}", b.choose(([x, y], [y, x])), [(x.shape, "f32")])


def select(b: Block) -> None:
    x = b.pick()
    if x:
        y = b.pick(x.shape) or x
        direction = "comparison_direction = #stablehlo<comparison_direction LT>"
        scalar = b.flip(4)
        c = (
            b.constant((), "i1")
            if scalar
            else b.emit("stablehlo.compare", [x, y], [(x.shape, "i1")], direction)[0]
        )
        b.emit("stablehlo.select", [c, x, y], [(x.shape, "f32")])


def clamp(b: Block) -> None:
    x = b.pick()
    if x:
        bounds = [b.constant() if b.flip() else (b.pick(x.shape) or x) for _ in range(2)]
        b.emit("stablehlo.clamp", [bounds[0], x, bounds[1]], [(x.shape, "f32")])


# ---- Shapes ------------------------------------------------------------------------------------------------


def transpose(b: Block) -> None:
    x = b.pick(rank=2)
    if x:
        order = b.order(range(len(x.shape)))
        shape = [x.shape[d] for d in order]
        b.emit("stablehlo.transpose", [x], [(shape, "f32")], f"permutation = {integers(order)}")


def reshape(b: Block) -> None:
    x = b.pick()
    if not x:
        return
    left = prod(x.shape)
    shape: list[int] = []
    while left > 1 and len(shape) < RANK - 1:
        divisors = [d for d in range(2, left + 1) if left % d == 0]
        shape.append(b.choose(divisors))
        left //= shape[-1]
    shape += [left] if left > 1 else []
    if len(shape) < RANK and b.flip(4):
        shape.insert(b.number(0, len(shape)), 1)
    b.emit("stablehlo.reshape", [x], [(shape, "f32")])


def broadcast(b: Block) -> None:
    x = b.constant() if b.flip(4) else b.pick()
    if not x:
        return
    shape = [b.choose((4, 8, 2)) if d == 1 and b.flip() else d for d in x.shape]
    dimensions = list(range(len(shape)))
    for _ in range(b.number(0, min(2, RANK - len(shape)))):
        place = b.number(0, len(shape))
        shape.insert(place, b.choose((4, 8, 2, 1)))
        dimensions = [d + (d >= place) for d in dimensions]
    properties = f"broadcast_dimensions = {integers(dimensions)}"
    b.emit("stablehlo.broadcast_in_dim", [x], [(shape, "f32")], properties)


def concatenate(b: Block) -> None:
    x = b.pick(rank=1)
    if x:
        d = b.number(0, len(x.shape) - 1)
        operands = [x, *(b.pick(x.shape) or x for _ in range(b.number(1, 2)))]
        shape = [n * len(operands) if i == d else n for i, n in enumerate(x.shape)]
        b.emit("stablehlo.concatenate", operands, [(shape, "f32")], f"dimension = {d} : i64")


def part(b: Block, x: Value) -> list[int]:
    """The shape of a random slice of `x`."""
    return [b.choose((n, n, max(n // 2, 1), max(n - 1, 1))) for n in x.shape]


def slice_(b: Block) -> None:
    x = b.pick(rank=1)
    if x:
        shape = part(b, x)
        starts = [b.number(0, n - m) for n, m in zip(x.shape, shape, strict=True)]
        limits = [s + m for s, m in zip(starts, shape, strict=True)]
        properties = (
            f"start_indices = {integers(starts)}, limit_indices = {integers(limits)}, "
            f"strides = {integers([1] * len(shape))}"
        )
        b.emit("stablehlo.slice", [x], [(shape, "f32")], properties)


def dynamic_slice(b: Block) -> None:
    x = b.pick(rank=1)
    if x:
        shape = part(b, x)
        starts = [b.constant((), "i32") for _ in shape]
        b.emit("stablehlo.dynamic_slice", [x, *starts], [(shape, "f32")], f"slice_sizes = {integers(shape)}")


def dynamic_update_slice(b: Block) -> None:
    x = b.pick(rank=1)
    if x:
        updates = [
            v
            for v in b.values
            if v.element == "f32"
            and len(v.shape) == len(x.shape)
            and all(m <= n for n, m in zip(x.shape, v.shape, strict=True))
        ]
        starts = [b.constant((), "i32") for _ in x.shape]
        b.emit("stablehlo.dynamic_update_slice", [x, b.choose(updates), *starts], [(x.shape, "f32")])


def pad(b: Block) -> None:
    x = b.pick(rank=1)
    if x:
        low, high, inner = ([b.choose((0, 0, 0, 1, 2)) for _ in x.shape] for _ in range(3))
        shape = [p + n + q + (n - 1) * r for n, p, q, r in zip(x.shape, low, high, inner, strict=True)]
        properties = (
            f"edge_padding_low = {integers(low)}, edge_padding_high = {integers(high)}, "
            f"interior_padding = {integers(inner)}"
        )
        b.emit("stablehlo.pad", [x, b.constant()], [(shape, "f32")], properties)


def reverse(b: Block) -> None:
    x = b.pick(rank=1)
    if x:
        dimensions = b.subset(range(len(x.shape)), 1)
        b.emit("stablehlo.reverse", [x], [(x.shape, "f32")], f"dimensions = {integers(dimensions)}")


def iota(b: Block) -> None:
    x = b.pick(rank=1)
    if x:
        d = b.number(0, len(x.shape) - 1)
        b.emit("stablehlo.iota", [], [(x.shape, "f32")], f"iota_dimension = {d} : i64")


def constant(b: Block) -> None:
    x = b.pick()
    b.constant(x.shape if x else ())


# ---- Contractions, reductions, indexing --------------------------------------------------------------------


def dot_general(b: Block) -> None:
    x, y = b.pick(rank=1), b.pick(rank=1)
    if not x or not y:
        return
    batch: list[tuple[int, int]] = []
    contracting: list[tuple[int, int]] = []
    left = list(range(len(y.shape)))
    for i in b.order(range(len(x.shape))):
        equal = [j for j in left if y.shape[j] == x.shape[i]]
        if equal and (len(contracting) == 0 or b.flip()):
            j = b.choose(equal)
            left.remove(j)
            (batch if b.flip(3) else contracting).append((i, j))
    used = {i for i, _ in batch + contracting}
    shape = [x.shape[i] for i, _ in batch] + [n for i, n in enumerate(x.shape) if i not in used]
    shape += [y.shape[j] for j in left]
    if len(shape) > RANK:
        return
    numbers = ", ".join(
        f"{side}_{kind}_dimensions = [{', '.join(str(pair[k]) for pair in pairs)}]"
        for kind, pairs in (("batching", batch), ("contracting", contracting))
        for k, side in enumerate(("lhs", "rhs"))
    )
    properties = f"dot_dimension_numbers = #stablehlo.dot<{numbers}>"
    b.emit("stablehlo.dot_general", [x, y], [(shape, "f32")], properties)


def convolution(b: Block) -> None:
    x = b.pick(rank=3)
    if not x or len(x.shape) != 3:
        return
    groups = b.choose([g for g in (1, 1, 2) if x.shape[2] % g == 0])
    shape = (b.choose((1, 3)), x.shape[2] // groups, b.choose((4, 8)))
    kernel = b.pick(shape) or b.emit("stablehlo.iota", [], [(shape, "f32")], "iota_dimension = 2 : i64")[0]
    properties = (
        "dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, batch_group_count = 1 : i64, "
        f"feature_group_count = {groups} : i64, padding = dense<{shape[0] // 2}> : tensor<1x2xi64>"
    )
    b.emit("stablehlo.convolution", [x, kernel], [((*x.shape[:2], shape[2]), "f32")], properties)


def folded(b: Block, name: str = "add") -> Block:
    """The region of a reduction."""
    inner = b.region([((), "f32"), ((), "f32")], closed=True)
    total = inner.emit(f"stablehlo.{name}", inner.values, [((), "f32")], bare=True)
    return inner.finish(total)


def reduce(b: Block) -> None:
    x = b.pick(rank=1)
    if x:
        dimensions = b.subset(range(len(x.shape)), 1)
        shape = [n for d, n in enumerate(x.shape) if d not in dimensions]
        operands = [x, b.constant()]
        properties = f"dimensions = {integers(dimensions)}"
        b.emit("stablehlo.reduce", operands, [(shape, "f32")], properties, regions=[folded(b)])


def reduce_window(b: Block) -> None:
    x = b.pick(rank=1)
    if not x:
        return
    window, strides, padding, shape = [], [], [], []
    for n in x.shape:  # untouched, a cumulative reduction, or pooling
        size, stride, low = b.choose(((1, 1, 0), (1, 1, 0), (n, 1, n - 1), (min(2, n), min(2, n), 0)))
        window.append(size)
        strides.append(stride)
        padding.append(f"[{low}, 0]")
        shape.append((n + low - size) // stride + 1)
    properties = (
        f"window_dimensions = {integers(window)}, window_strides = {integers(strides)}, "
        f"padding = dense<[{', '.join(padding)}]> : tensor<{len(shape)}x2xi64>"
    )
    operands = [x, b.constant()]
    b.emit("stablehlo.reduce_window", operands, [(shape, "f32")], properties, regions=[folded(b, "maximum")])


def sort(b: Block) -> None:
    x = b.pick(rank=1)
    if not x:
        return
    operands = [x, *([b.pick(x.shape) or x] if b.flip(3) else [])]
    inner = b.region([((), "f32")] * (2 * len(operands)), closed=True)
    direction = "comparison_direction = #stablehlo<comparison_direction LT>"
    less = inner.emit("stablehlo.compare", inner.values[:2], [((), "i1")], direction, bare=True)
    properties = f"dimension = {b.number(0, len(x.shape) - 1)} : i64, is_stable = true"
    types = [(x.shape, "f32")] * len(operands)
    b.emit("stablehlo.sort", operands, types, properties, regions=[inner.finish(less)])


def indices(b: Block, n: int) -> Value:
    """Start indices for a gather or scatter of `n` slices."""
    shape = (n, 1)
    known = b.pick(shape, element="i32")
    return known or b.emit("stablehlo.iota", [], [(shape, "i32")], "iota_dimension = 0 : i64")[0]


def take(b: Block) -> None:
    x = b.pick(rank=1)
    if not x:
        return
    d, n = b.number(0, len(x.shape) - 1), b.choose((4, 8, 2))
    sizes = [1 if i == d else size for i, size in enumerate(x.shape)]
    shape = [n if i == d else size for i, size in enumerate(x.shape)]
    offsets = ", ".join(str(i) for i in range(len(shape)) if i != d)
    properties = (
        f"dimension_numbers = #stablehlo.gather<offset_dims = [{offsets}], collapsed_slice_dims = [{d}], "
        f"start_index_map = [{d}], index_vector_dim = 1>, slice_sizes = {integers(sizes)}, "
        "indices_are_sorted = false"
    )
    b.emit("stablehlo.gather", [x, indices(b, n)], [(shape, "f32")], properties)


def scatter(b: Block) -> None:
    x = b.pick(rank=1)
    if not x:
        return
    d = b.number(0, len(x.shape) - 1)
    updates = [
        v
        for v in b.values
        if v.element == "f32"
        and len(v.shape) == len(x.shape)
        and all(m == n or i == d for i, (n, m) in enumerate(zip(x.shape, v.shape, strict=True)))
    ]
    update = b.choose(updates)
    windows = ", ".join(str(i) for i in range(len(x.shape)) if i != d)
    properties = (
        f"scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [{windows}], "
        f"inserted_window_dims = [{d}], scatter_dims_to_operand_dims = [{d}], index_vector_dim = 1>, "
        "indices_are_sorted = false, unique_indices = false"
    )
    operands = [x, indices(b, update.shape[d]), update]
    b.emit("stablehlo.scatter", operands, [(x.shape, "f32")], properties, regions=[folded(b)])


# ---- Shardings and data flow -------------------------------------------------------------------------------


def sharding_constraint(b: Block) -> None:
    x = b.pick()
    if x:
        result = Value(b.name(), x.shape, constant=x.constant)
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


OPS: tuple[Op, ...] = (
    unary,
    binary,
    select,
    clamp,
    transpose,
    reshape,
    broadcast,
    concatenate,
    slice_,
    dynamic_slice,
    dynamic_update_slice,
    pad,
    reverse,
    iota,
    constant,
    dot_general,
    dot_general,
    convolution,
    reduce,
    reduce_window,
    sort,
    take,
    scatter,
    sharding_constraint,
    sharding_constraint,
    sharding_group,
    optimization_barrier,
    custom_call,
    custom_call,
    call,
    call,
)
REGION_OPS: tuple[Op, ...] = (while_, case)
