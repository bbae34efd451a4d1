"""Hypothesis: random ops. Each function writes one op into a block, with operands that are in scope.

A function writes nothing where the block has no fitting operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from .random_blocks import Block, Value

Op = Callable[[Block], object]
RANK = 5  # no op makes a tensor of a higher rank

UNARY = ("negate", "tanh", "exponential", "abs")
BINARY = ("add", "multiply", "subtract", "maximum")


def integers(items: Sequence[int]) -> str:
    """A list of integers as an attribute."""
    return f"array<i64: {', '.join(map(str, items))}>" if items else "array<i64>"


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
    """One spatial dimension; features or the batch in groups, strides and dilation now and then."""
    x = b.pick(rank=3)
    if not x or len(x.shape) != 3:
        return
    batch, width, features = x.shape
    groups = b.choose([g for g in (1, 1, 2) if features % g == 0])
    batches = b.choose([g for g in (1, 1, 1, 2) if batch % g == 0]) if groups == 1 else 1
    size, stride, dilation = b.choose(((1, 1, 1), (3, 1, 1), (2, 2, 1), (width, 1, 1), (3, 1, 2)))
    shape = (size, features // groups, b.choose((4, 8)))
    kernel = b.pick(shape) or b.emit("stablehlo.iota", [], [(shape, "f32")], "iota_dimension = 2 : i64")[0]
    low = b.number(0, size // 2)
    out = (width + 2 * low - dilation * (size - 1) - 1) // stride + 1
    if out < 1:
        return
    properties = (
        "dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, "
        f"batch_group_count = {batches} : i64, feature_group_count = {groups} : i64, "
        f"window_strides = {integers([stride])}, rhs_dilation = {integers([dilation])}, "
        f"padding = dense<{low}> : tensor<1x2xi64>"
    )
    b.emit("stablehlo.convolution", [x, kernel], [((batch // batches, out, shape[2]), "f32")], properties)


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


def convert(b: Block) -> None:
    """To other elements and back; `bitcast_convert` splits an element into parts and joins them again."""
    x = b.pick()
    if x:
        if b.flip():
            (y,) = b.emit("stablehlo.convert", [x], [(x.shape, "bf16")])
            b.emit("stablehlo.convert", [y], [(x.shape, "f32")])
        else:
            (y,) = b.emit("stablehlo.bitcast_convert", [x], [((*x.shape, 2), "bf16")])
            b.emit("stablehlo.bitcast_convert", [y], [(x.shape, "f32")])


def random_bits(b: Block) -> None:
    x = b.pick()
    if x:
        state = b.constant((2,), "ui64")
        types = [((2,), "ui64"), (x.shape, "ui32")]
        properties = "rng_algorithm = #stablehlo<rng_algorithm DEFAULT>"
        bits = b.emit("stablehlo.rng_bit_generator", [state], types, properties)[1]
        b.emit("stablehlo.convert", [bits], [(x.shape, "f32")])


def reduce_pair(b: Block) -> None:
    """A reduction of two tensors at once."""
    x = b.pick(rank=1)
    if x:
        y = b.pick(x.shape) or x
        dimensions = b.subset(range(len(x.shape)), 1)
        shape = [n for d, n in enumerate(x.shape) if d not in dimensions]
        inner = b.region([((), "f32")] * 4, closed=True)
        low, high = (
            inner.emit(f"stablehlo.{name}", [inner.values[k], inner.values[k + 2]], [((), "f32")], bare=True)
            for k, name in enumerate(("minimum", "maximum"))
        )
        body = inner.finish([*low, *high])
        operands = [x, y, b.constant(), b.constant()]
        properties = f"dimensions = {integers(dimensions)}"
        b.emit("stablehlo.reduce", operands, [(shape, "f32")] * 2, properties, regions=[body])


def select_and_scatter(b: Block) -> None:
    """The gradient of pooling one dimension by two."""
    x = b.pick(rank=1)
    if not x or not any(n % 2 == 0 for n in x.shape):
        return
    d = b.choose([d for d, n in enumerate(x.shape) if n % 2 == 0])
    shape = [n // 2 if i == d else n for i, n in enumerate(x.shape)]
    source = b.pick(shape) or b.constant(shape)
    window = integers([2 if i == d else 1 for i in range(len(shape))])
    inner = b.region([((), "f32")] * 2, closed=True)
    direction = "comparison_direction = #stablehlo<comparison_direction GE>"
    chosen = inner.finish(inner.emit("stablehlo.compare", inner.values, [((), "i1")], direction, bare=True))
    properties = f"window_dimensions = {window}, window_strides = {window}"
    operands, regions = [x, source, b.constant()], [chosen, folded(b)]
    b.emit("stablehlo.select_and_scatter", operands, [(x.shape, "f32")], properties, regions=regions)


def batched_take(b: Block) -> None:
    """A gather along the last dimension, with its other dimensions as batches; sometimes scattered back."""
    x = b.pick(rank=2)
    if not x:
        return
    n = b.choose((4, 8, 2))
    last = len(x.shape) - 1
    batches = list(range(last))
    shape = (*x.shape[:-1], n)
    (at,) = b.emit("stablehlo.iota", [], [((*shape, 1), "i32")], "iota_dimension = 0 : i64")
    common = f"index_vector_dim = {len(shape)}>, indices_are_sorted = false"
    properties = (
        f"slice_sizes = {integers([1] * len(shape))}, dimension_numbers = #stablehlo.gather<"
        f"collapsed_slice_dims = [{last}], operand_batching_dims = {batches}, "
        f"start_indices_batching_dims = {batches}, start_index_map = [{last}], {common}"
    )
    (taken,) = b.emit("stablehlo.gather", [x, at], [(shape, "f32")], properties)
    if b.flip():
        properties = (
            "unique_indices = false, scatter_dimension_numbers = #stablehlo.scatter<"
            f"inserted_window_dims = [{last}], input_batching_dims = {batches}, "
            f"scatter_indices_batching_dims = {batches}, scatter_dims_to_operand_dims = [{last}], {common}"
        )
        b.emit("stablehlo.scatter", [x, at, taken], [(x.shape, "f32")], properties, regions=[folded(b)])
