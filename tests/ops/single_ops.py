"""Hypothesis: modules of one op each, with random shapes and attributes, by family of ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from hypothesis import strategies as st

Shape = Sequence[int]
Draw = Callable[..., Any]

SIZES = st.sampled_from([1, 1, 2, 3, 4, 5, 6, 8, 12])
SHAPES = st.lists(SIZES, min_size=0, max_size=4)


def tensor(shape: Shape, element: str = "f32") -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def array(items: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, items))}>" if items else "array<i64>"


def module(
    name: str,
    operands: Sequence[str],
    results: Sequence[str],
    attributes: str = "",
    regions: str = "",
    before: str = "",
) -> str:
    """A module with an op in generic form; its operands are function arguments %0, %1, ..."""
    arguments = ", ".join(f"%{i}: {t}" for i, t in enumerate(operands))
    names = ", ".join(f"%{i}" for i in range(len(operands)))
    types = f"({', '.join(operands)}) -> ({', '.join(results)})"
    op = f'%r:{len(results)} = "{name}"({names}) {regions} {{{attributes}}} : {types}'
    return f"func.func @f({arguments}) {{\n  {before}{op}\n  return\n}}\n"


def combine(op: str, inputs: int = 1, element: str = "f32") -> str:
    """A region that combines pairs of scalars."""
    scalar = f"tensor<{element}>"
    arguments = [f"%{side}{i}: {scalar}" for side in "ab" for i in range(inputs)]
    lines = [f"%c{i} = {op} %a{i}, %b{i} : {scalar}" for i in range(inputs)]
    returned = (
        f"stablehlo.return {', '.join(f'%c{i}' for i in range(inputs))} : {', '.join([scalar] * inputs)}"
    )
    return "({\n" + f"^bb0({', '.join(arguments)}):\n" + "\n".join([*lines, returned]) + "\n})"


def compare(direction: str, inputs: int = 1) -> str:
    """A region that compares scalars."""
    arguments = [f"%{side}{i}: tensor<f32>" for i in range(inputs) for side in "ab"]
    body = f"%c = stablehlo.compare {direction}, %a0, %b0 : (tensor<f32>, tensor<f32>) -> tensor<i1>"
    return f"({{\n^bb0({', '.join(arguments)}):\n{body}\nstablehlo.return %c : tensor<i1>\n}})"


@st.composite
def broadcast_in_dim(draw: Draw) -> str:
    shape = draw(SHAPES)
    dims = draw(st.permutations(range(len(shape))))[: draw(st.integers(0, len(shape)))]
    operand = [draw(st.sampled_from([1, shape[d]])) for d in dims]
    return module(
        "stablehlo.broadcast_in_dim",
        [tensor(operand)],
        [tensor(shape)],
        f"broadcast_dimensions = {array(dims)}",
    )


@st.composite
def reshape(draw: Draw) -> str:
    primes = draw(st.lists(st.sampled_from([1, 2, 2, 2, 3, 3, 5, 7]), max_size=8))

    def split(factors: Sequence[int]) -> list[int]:
        shape, rest = [], list(factors)
        while rest:
            n = draw(st.integers(0, len(rest)))
            shape.append(prod(rest[:n]))
            rest = rest[n:]
        return shape

    return module(
        "stablehlo.reshape", [tensor(split(primes))], [tensor(split(draw(st.permutations(primes))))]
    )


@st.composite
def transpose(draw: Draw) -> str:
    shape = draw(SHAPES)
    order = draw(st.permutations(range(len(shape))))
    result = tensor([shape[d] for d in order])
    return module("stablehlo.transpose", [tensor(shape)], [result], f"permutation = {array(order)}")


@st.composite
def slice_(draw: Draw) -> str:
    shape = draw(SHAPES)
    starts = [draw(st.integers(0, n - 1)) for n in shape]
    limits = [draw(st.integers(s + 1, n)) for s, n in zip(starts, shape, strict=True)]
    strides = [draw(st.integers(1, 3)) for _ in shape]
    result = [-(-(e - s) // k) for s, e, k in zip(starts, limits, strides, strict=True)]
    attributes = (
        f"start_indices = {array(starts)}, limit_indices = {array(limits)}, strides = {array(strides)}"
    )
    return module("stablehlo.slice", [tensor(shape)], [tensor(result)], attributes)


@st.composite
def pad(draw: Draw) -> str:
    shape = draw(SHAPES)
    low, high = ([draw(st.integers(-1 if n > 2 else 0, 3)) for n in shape] for _ in range(2))
    inner = [draw(st.integers(0, 2)) for _ in shape]
    result = [a + b + n + k * (n - 1) for a, b, k, n in zip(low, high, inner, shape, strict=True)]
    edges = f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}"
    attributes = f"{edges}, interior_padding = {array(inner)}"
    return module("stablehlo.pad", [tensor(shape), "tensor<f32>"], [tensor(result)], attributes)


@st.composite
def concatenate(draw: Draw) -> str:
    shape = draw(st.lists(SIZES, min_size=1, max_size=4))
    d = draw(st.integers(0, len(shape) - 1))
    parts = draw(st.lists(SIZES, min_size=1, max_size=4))
    operands = [tensor([*shape[:d], n, *shape[d + 1 :]]) for n in parts]
    result = tensor([*shape[:d], sum(parts), *shape[d + 1 :]])
    return module("stablehlo.concatenate", operands, [result], f"dimension = {d} : i64")


@st.composite
def dot_general(draw: Draw) -> str:
    batch, contracted = draw(st.lists(SIZES, max_size=2)), draw(st.lists(SIZES, max_size=2))
    free = [draw(st.lists(SIZES, max_size=2)) for _ in range(2)]
    shapes, dims = [], []
    for own in free:
        labels = [("b", i, n) for i, n in enumerate(batch)] + [("c", i, n) for i, n in enumerate(contracted)]
        labels = draw(st.permutations(labels + [("f", i, n) for i, n in enumerate(own)]))
        at = {label[:2]: d for d, label in enumerate(labels)}
        shapes.append([n for _, _, n in labels])
        dims.append(([at["b", i] for i in range(len(batch))], [at["c", i] for i in range(len(contracted))]))
    kept = [
        [n for d, n in enumerate(shape) if d not in (*b, *c)]
        for shape, (b, c) in zip(shapes, dims, strict=True)
    ]
    numbers = ", ".join(
        f"{side}_{part}_dimensions = {of}"
        for side, (b, c) in zip(("lhs", "rhs"), dims, strict=True)
        for part, of in (("batching", b), ("contracting", c))
    )
    # The attribute's parser wants its fields in order.
    order = sorted(numbers.split("], "), key=lambda f: ("contracting" in f, "rhs" in f))
    text = ", ".join(f if f.endswith("]") else f + "]" for f in order)
    return module(
        "stablehlo.dot_general",
        [tensor(s) for s in shapes],
        [tensor([*batch, *kept[0], *kept[1]])],
        f"dot_dimension_numbers = #stablehlo.dot<{text}>",
    )


@st.composite
def convolution(draw: Draw) -> str:
    spatial = draw(st.integers(0, 3))
    feature_groups = draw(st.sampled_from([1, 1, 2, 3]))
    batch_groups = draw(st.sampled_from([1, 1, 2])) if feature_groups == 1 else 1
    batch, inputs = draw(SIZES) * batch_groups, draw(SIZES)
    outputs = draw(SIZES) * feature_groups * batch_groups
    sizes = [draw(st.sampled_from([1, 2, 7, 8, 12])) for _ in range(spatial)]
    windows = [draw(st.integers(1, 2 * n)) for n in sizes]
    strides = [draw(st.integers(1, 3)) for _ in sizes]
    pads = [(draw(st.integers(0, 2)), max(0, w - n)) for w, n in zip(windows, sizes, strict=True)]
    # Dilation spreads the input and the kernel; the padding makes up for a kernel that would not fit.
    bases, dilations = ([draw(st.sampled_from([1, 1, 1, 2])) for _ in sizes] for _ in range(2))
    spread = [(n - 1) * k + 1 for n, k in zip(sizes, bases, strict=True)]
    reach = [(w - 1) * k + 1 for w, k in zip(windows, dilations, strict=True)]
    pads = [(a, max(b, r - n - a)) for (a, b), n, r in zip(pads, spread, reach, strict=True)]
    results = [(n + a + b - r) // s + 1 for n, r, s, (a, b) in zip(spread, reach, strides, pads, strict=True)]

    def laid_out(first: str, second: str, extents: Sequence[int], a: int, b: int) -> tuple[str, str]:
        dims = [(first, a), (second, b), *((str(i), n) for i, n in enumerate(extents))]
        dims = draw(st.permutations(dims))
        return f"[{', '.join(name for name, _ in dims)}]", tensor([n for _, n in dims])

    lhs, lhs_type = laid_out("b", "f", sizes, batch, inputs * feature_groups)
    rhs, rhs_type = laid_out("i", "o", windows, inputs, outputs)
    out, out_type = laid_out("b", "f", results, batch // batch_groups, outputs)
    attributes = [
        f"dimension_numbers = #stablehlo.conv<{lhs}x{rhs}->{out}>",
        f"feature_group_count = {feature_groups} : i64, batch_group_count = {batch_groups} : i64",
    ]
    if spatial:
        attributes.append(f"window_strides = {array(strides)}")
        attributes.append(f"padding = dense<{[list(p) for p in pads]}> : tensor<{spatial}x2xi64>")
        attributes.append(f"lhs_dilation = {array(bases)}, rhs_dilation = {array(dilations)}")
        if draw(st.booleans()):
            reversals = ", ".join(str(draw(st.booleans())).lower() for _ in sizes)
            attributes.append(f"window_reversal = array<i1: {reversals}>")
    return module("stablehlo.convolution", [lhs_type, rhs_type], [out_type], ", ".join(attributes))


@st.composite
def reduce(draw: Draw) -> str:
    shape, inputs = draw(SHAPES), draw(st.integers(1, 3))
    dims = draw(st.permutations(range(len(shape))))[: draw(st.integers(0, len(shape)))]
    result = tensor([n for d, n in enumerate(shape) if d not in dims])
    return module(
        "stablehlo.reduce",
        [tensor(shape)] * inputs + ["tensor<f32>"] * inputs,
        [result] * inputs,
        f"dimensions = {array(dims)}",
        combine("stablehlo.add", inputs),
    )


@st.composite
def sort(draw: Draw) -> str:
    shape, inputs = draw(st.lists(SIZES, min_size=1, max_size=4)), draw(st.integers(1, 3))
    d = draw(st.integers(-len(shape), len(shape) - 1))
    attributes = draw(st.sampled_from([f"dimension = {d} : i64", "is_stable = true"]))
    types = [tensor(shape)] * inputs
    return module("stablehlo.sort", types, types, attributes, compare("LT", inputs))


@st.composite
def windowed(draw: Draw) -> tuple[list[int], list[int], str]:
    """A shape, the number of windows along its dims, and the attributes."""
    shape = draw(st.lists(SIZES, min_size=1, max_size=4))
    windows = [draw(st.integers(1, max(1, n // 2))) for n in shape]
    strides = [draw(st.integers(1, 2)) for _ in shape] if draw(st.booleans()) else [1] * len(shape)
    pads = [[draw(st.sampled_from([0, 0, 0, 1])) for _ in range(2)] for _ in shape]
    counts = [(n + sum(p) - w) // s + 1 for n, w, s, p in zip(shape, windows, strides, pads, strict=True)]
    attributes = [f"window_dimensions = {array(windows)}"]
    if any(s != 1 for s in strides):
        attributes.append(f"window_strides = {array(strides)}")
    if any(any(p) for p in pads):
        attributes.append(f"padding = dense<{pads}> : tensor<{len(shape)}x2xi64>")
    return shape, counts, ", ".join(attributes)


@st.composite
def reduce_window(draw: Draw) -> str:
    shape, counts, attributes = draw(windowed())
    inputs = draw(st.integers(1, 2))
    return module(
        "stablehlo.reduce_window",
        [tensor(shape)] * inputs + ["tensor<f32>"] * inputs,
        [tensor(counts)] * inputs,
        attributes,
        combine("stablehlo.maximum", inputs),
    )


@st.composite
def dilated_window(draw: Draw) -> str:
    """A reduce_window over an operand, or in steps, with holes."""
    shape = draw(st.lists(SIZES, min_size=1, max_size=4))
    windows = [draw(st.integers(1, n)) for n in shape]
    bases, dilations = ([draw(st.integers(1, 2)) for _ in shape] for _ in range(2))
    spread = [(n - 1) * k + 1 for n, k in zip(shape, bases, strict=True)]
    reach = [(w - 1) * k + 1 for w, k in zip(windows, dilations, strict=True)]
    pads = [[0, max(0, r - n)] for n, r in zip(spread, reach, strict=True)]
    counts = [n + p - r + 1 for n, (_, p), r in zip(spread, pads, reach, strict=True)]
    attributes = (
        f"window_dimensions = {array(windows)}, base_dilations = {array(bases)}, "
        f"window_dilations = {array(dilations)}, padding = dense<{pads}> : tensor<{len(shape)}x2xi64>"
    )
    region = combine("stablehlo.add")
    return module(
        "stablehlo.reduce_window", [tensor(shape), "tensor<f32>"], [tensor(counts)], attributes, region
    )


@st.composite
def select_and_scatter(draw: Draw) -> str:
    shape, counts, attributes = draw(windowed())
    regions = compare("GE")[:-1] + ", " + combine("stablehlo.add")[1:]
    types = [tensor(shape), tensor(counts), "tensor<f32>"]
    return module("stablehlo.select_and_scatter", types, [tensor(shape)], attributes, regions)


@st.composite
def dynamic_slice(draw: Draw) -> str:
    shape = draw(SHAPES)
    sizes = [draw(st.one_of(st.just(n), st.integers(1, n))) for n in shape]
    types = [tensor(shape), *["tensor<i32>"] * len(shape)]
    return module("stablehlo.dynamic_slice", types, [tensor(sizes)], f"slice_sizes = {array(sizes)}")


@st.composite
def dynamic_update_slice(draw: Draw) -> str:
    shape = draw(SHAPES)
    sizes = [draw(st.one_of(st.just(n), st.integers(1, n))) for n in shape]
    types = [tensor(shape), tensor(sizes), *["tensor<i32>"] * len(shape)]
    return module("stablehlo.dynamic_update_slice", types, [tensor(shape)])


@st.composite
def slicing(draw: Draw) -> tuple[list[int], list[int], list[int], dict[str, list[int]], int]:
    """Shapes of the input, the indices and the slices; the lists of dims; the index vector dim."""
    shape = draw(st.lists(SIZES, min_size=1, max_size=4))
    dims = draw(st.permutations(range(len(shape))))
    batching = dims[: draw(st.integers(0, min(2, len(shape))))]
    rest = [d for d in dims if d not in batching]
    collapsed = sorted(rest[: draw(st.integers(0, len(rest)))])
    kept = [d for d in range(len(shape)) if d not in batching and d not in collapsed]
    windows = [draw(st.sampled_from([1, shape[d], (shape[d] + 1) // 2])) for d in kept]
    free = draw(st.lists(SIZES, max_size=2))
    loops = draw(st.permutations([("batch", d) for d in batching] + [("free", n) for n in free]))
    index_dims = sorted(set(collapsed) | {d for d in kept if draw(st.booleans())})
    index_dims = draw(st.permutations(index_dims))
    extents = [shape[x] if kind == "batch" else x for kind, x in loops]
    vector = draw(st.integers(0, len(loops)))
    indices = [*extents[:vector], len(index_dims), *extents[vector:]]
    if len(index_dims) == 1 and draw(st.booleans()):  # the index vector may be left out
        vector, indices = len(loops), extents
    rank = len(loops) + len(kept)
    offsets = sorted(draw(st.permutations(range(rank)))[: len(kept)])
    window_sizes, extent = iter(windows), iter(extents)
    slices = [next(window_sizes) if d in offsets else next(extent) for d in range(rank)]
    position = {d: next(i for i, loop in enumerate(loops) if loop == ("batch", d)) for d in batching}
    order = sorted(batching)
    lists = {
        "offset": offsets,
        "collapsed": collapsed,
        "operand_batch": order,
        "indices_batch": [position[d] + (position[d] >= vector) for d in order],
        "map": index_dims,
        "sizes": [dict(zip(kept, windows, strict=True)).get(d, 1) for d in range(len(shape))],
    }
    return shape, indices, slices, lists, vector


@st.composite
def gather(draw: Draw) -> str:
    shape, indices, slices, lists, vector = draw(slicing())
    numbers = (
        f"offset_dims = {lists['offset']}, collapsed_slice_dims = {lists['collapsed']}, "
        f"operand_batching_dims = {lists['operand_batch']}, "
        f"start_indices_batching_dims = {lists['indices_batch']}, "
        f"start_index_map = {list(lists['map'])}, index_vector_dim = {vector}"
    )
    attributes = f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = {array(lists['sizes'])}"
    return module("stablehlo.gather", [tensor(shape), tensor(indices, "i32")], [tensor(slices)], attributes)


@st.composite
def scatter(draw: Draw) -> str:
    shape, indices, updates, lists, vector = draw(slicing())
    inputs = draw(st.integers(1, 2))
    numbers = (
        f"update_window_dims = {lists['offset']}, inserted_window_dims = {lists['collapsed']}, "
        f"input_batching_dims = {lists['operand_batch']}, "
        f"scatter_indices_batching_dims = {lists['indices_batch']}, "
        f"scatter_dims_to_operand_dims = {list(lists['map'])}, index_vector_dim = {vector}"
    )
    op = draw(st.sampled_from(["add", "multiply", "maximum", "subtract", "divide"]))
    return module(
        "stablehlo.scatter",
        [tensor(shape)] * inputs + [tensor(indices, "i32")] + [tensor(updates)] * inputs,
        [tensor(shape)] * inputs,
        f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>",
        combine(f"stablehlo.{op}", inputs),
    )


@st.composite
def triangular_solve(draw: Draw) -> str:
    batch, n, m, left = draw(st.lists(SIZES, max_size=2)), draw(SIZES), draw(SIZES), draw(st.booleans())
    b = tensor([*batch, n, m] if left else [*batch, m, n])
    transpose_a = draw(st.sampled_from(["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]))
    attributes = (
        f"left_side = {str(left).lower()}, lower = true, unit_diagonal = false, "
        f"transpose_a = #stablehlo<transpose {transpose_a}>"
    )
    return module("stablehlo.triangular_solve", [tensor([*batch, n, n]), b], [b], attributes)


@st.composite
def fft(draw: Draw) -> str:
    shape = draw(st.lists(st.sampled_from([2, 4, 8]), min_size=1, max_size=4))
    length = shape[-draw(st.integers(1, min(3, len(shape)))) :]
    kind = draw(st.sampled_from(["FFT", "IFFT", "RFFT"]))
    operand = tensor(shape, "f32" if kind == "RFFT" else "complex<f32>")
    result = tensor([*shape[:-1], shape[-1] // 2 + 1] if kind == "RFFT" else shape, "complex<f32>")
    attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {array(length)}"
    return module("stablehlo.fft", [operand], [result], attributes)


@st.composite
def scalars(draw: Draw) -> str:
    """Elementwise ops whose other operands may be scalars."""
    whole = tensor(draw(SHAPES))
    one, two = (draw(st.sampled_from([whole, "tensor<f32>"])) for _ in range(2))
    if draw(st.booleans()):
        return module("stablehlo.clamp", [one, whole, one], [whole])
    return module("stablehlo.select", [two.replace("f32", "i1"), whole, whole], [whole])


@st.composite
def bitcast_convert(draw: Draw) -> str:
    shape = draw(SHAPES)
    wide, narrow = tensor(shape), tensor([*shape, 2], "ui16")
    types = draw(st.sampled_from([(wide, narrow), (narrow, wide), (wide, tensor(shape, "ui32"))]))
    return module("stablehlo.bitcast_convert", [types[0]], [types[1]])


@st.composite
def dot(draw: Draw) -> str:
    rows, inner, columns = draw(st.lists(SIZES, max_size=1)), draw(SIZES), draw(st.lists(SIZES, max_size=1))
    types = [tensor([*rows, inner]), tensor([inner, *columns])]
    return module("stablehlo.dot", types, [tensor([*rows, *columns])])


@st.composite
def batch_norm_inference(draw: Draw) -> str:
    shape = draw(st.lists(SIZES, min_size=1, max_size=4))
    d = draw(st.integers(0, len(shape) - 1))
    types = [tensor(shape), *[tensor([shape[d]])] * 4]
    attributes = f"epsilon = 1.0 : f32, feature_index = {d} : i64"
    return module("stablehlo.batch_norm_inference", types, [tensor(shape)], attributes)


@st.composite
def collective(draw: Draw) -> str:
    shape = [2 * n for n in draw(st.lists(SIZES, min_size=1, max_size=4))]
    d, e = (draw(st.integers(0, len(shape) - 1)) for _ in range(2))
    groups = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
    larger = [2 * n if i == e else n for i, n in enumerate(shape)]
    match draw(st.sampled_from(["all_gather", "reduce_scatter", "all_to_all"])):
        case "all_gather":
            attributes = f"all_gather_dim = {e} : i64, {groups}"
            return module("stablehlo.all_gather", [tensor(shape)], [tensor(larger)], attributes)
        case "reduce_scatter":
            attributes = f"scatter_dimension = {e} : i64, {groups}"
            return module(
                "stablehlo.reduce_scatter",
                [tensor(larger)],
                [tensor(shape)],
                attributes,
                combine("stablehlo.add"),
            )
    attributes = f"split_dimension = {d} : i64, concat_dimension = {e} : i64, split_count = 2 : i64, {groups}"
    result = [n // 2 if i == d else n for i, n in enumerate(larger)]
    return module("stablehlo.all_to_all", [tensor(shape)], [tensor(result)], attributes)


@st.composite
def custom_call(draw: Draw) -> str:
    batch, m, n = draw(st.lists(SIZES, max_size=2)), draw(SIZES), draw(SIZES)
    matrix, vector = tensor([*batch, m, n]), tensor([*batch, min(m, n)])
    top = draw(st.lists(SIZES, min_size=1, max_size=3))
    most = [draw(st.sampled_from([1, k])) for k in top]
    target, operands, results = draw(
        st.sampled_from(
            [
                ("Eigh", [tensor([*batch, n, n])], [tensor([*batch, n, n]), tensor([*batch, n])]),
                ("Qr", [matrix], [matrix, vector]),
                ("ProductOfElementaryHouseholderReflectors", [matrix, vector], [matrix]),
                ("mhlo.topk", [tensor(top)], [tensor(most), tensor(most, "i32")]),
                (
                    "ApproxTopK",
                    [tensor(top), tensor(top, "i32"), "tensor<f32>", "tensor<i32>"],
                    [tensor(most), tensor(most, "i32")],
                ),
            ]
        )
    )
    return module("stablehlo.custom_call", operands, results, f'call_target_name = "{target}"')


FAMILIES = {
    strategy.__name__.strip("_"): strategy()
    for strategy in (
        broadcast_in_dim,
        reshape,
        transpose,
        slice_,
        pad,
        concatenate,
        dot_general,
        convolution,
        reduce,
        sort,
        reduce_window,
        dilated_window,
        select_and_scatter,
        dynamic_slice,
        dynamic_update_slice,
        gather,
        scatter,
        triangular_solve,
        fft,
        scalars,
        bitcast_convert,
        dot,
        batch_norm_inference,
        collective,
        custom_call,
    )
}
