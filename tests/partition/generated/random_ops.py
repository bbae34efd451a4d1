"""Random ops: each function writes one or a few with operands of its own, and gives their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from .writing import Program, Shape, Value, array, integers, tensor

Op = Callable[[Program], None]


def _compare(direction: str, kind: str = "") -> str:
    text = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    return text + (f", compare_type = #stablehlo<comparison_type {kind}>" if kind else "")


# ---- Elementwise -----------------------------------------------------------------------------------------

_ANY = ("negate", "abs", "sign")
_FLOAT = (
    *("exponential", "tanh", "floor", "ceil", "cosine", "sine", "logistic", "exponential_minus_one", "cbrt"),
    *("round_nearest_even", "round_nearest_afz", "tan", "sqrt", "rsqrt", "log", "log_plus_one"),
)
_INTEGER = ("not", "popcnt", "count_leading_zeros")
_BINARY = ("add", "multiply", "subtract", "maximum", "minimum")


def unary(p: Program) -> None:
    element, shape = p.element("ffi"), p.shape()
    names = (*_ANY, *_FLOAT) if element[0] in "bf" else ("not",) if element[0] == "u" else (*_ANY, *_INTEGER)
    p.give(*p.emit(f"stablehlo.{p.random.choice(names)}", [p.argument(shape, element)], [(shape, element)]))


def binary(p: Program) -> None:
    element, shape = p.element("fibc"), p.shape()
    names: Sequence[str] = {"i1": ("and", "or", "xor"), "complex<f32>": ("add", "multiply", "subtract")}.get(
        element, _BINARY
    )
    if element[0] in "iu" and element != "i1" and p.flip(3):
        names = ("and", "or", "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic")
    operands = [p.argument(shape, element), p.argument(shape, element, 1, 4)]
    p.give(*p.emit(f"stablehlo.{p.random.choice(names)}", operands, [(shape, element)]))


def division(p: Program) -> None:
    element, shape = p.element("fi"), p.shape()
    names = ("divide", "remainder", *(("power", "atan2") if element[0] in "bf" else ()))
    operands = [p.argument(shape, element), p.argument(shape, element, 1, 4)]
    p.give(*p.emit(f"stablehlo.{p.random.choice(names)}", operands, [(shape, element)]))


def selection(p: Program) -> None:
    element, shape = p.element("fi"), p.shape()
    x, y = p.argument(shape, element), p.argument(shape, element)
    if p.flip():
        (where,) = p.emit(
            "stablehlo.compare", [x, y], [(shape, "i1")], _compare(p.random.choice(("LT", "EQ")))
        )
    else:
        where = p.argument((), "i1")
    p.give(*p.emit("stablehlo.select", [where, x, y], [(shape, element)]))
    bounds = [p.argument(() if p.flip() else shape, element, n, n + 2) for n in (0, 2)]
    p.give(*p.emit("stablehlo.clamp", [bounds[0], x, bounds[1]], [(shape, element)]))


def conversion(p: Program) -> None:
    element, shape = p.element("fib"), p.shape()
    to = p.random.choice(("f32", "i32", "bf16", "i8", "f64", "i1", "f8E4M3FN", "complex<f32>"))
    p.give(*p.emit("stablehlo.convert", [p.argument(shape, element)], [(shape, to)]))
    x = p.argument(shape, "f32")
    (y,) = p.emit("stablehlo.bitcast_convert", [x], [((*shape, 4), "ui8")])
    p.give(y, *p.emit("stablehlo.bitcast_convert", [y], [(shape, "i32")]))
    precision = "exponent_bits = 5 : i32, mantissa_bits = 4 : i32"
    p.give(*p.emit("stablehlo.reduce_precision", [x], [x], precision))
    p.give(*p.emit("stablehlo.is_finite", [x], [(shape, "i1")]))


def complex_numbers(p: Program) -> None:
    shape = p.shape()
    z = p.argument(shape, "complex<f32>")
    re = p.emit("stablehlo.real", [z], [(shape, "f32")])[0]
    im = p.emit("stablehlo.imag", [z], [(shape, "f32")])[0]
    p.give(*p.emit("stablehlo.complex", [im, re], [z]))


def map_(p: Program) -> None:
    shape = p.shape()
    x, y = p.argument(shape), p.argument(shape)
    body = p.folded("subtract", "f32")
    p.give(*p.emit("stablehlo.map", [x, y], [x], f"dimensions = {integers(range(len(shape)))}", [body]))


def chlo(p: Program) -> None:
    shape = p.shape()
    x = p.argument(shape, "f32", 1, 4)
    name = p.random.choice(("erf", "lgamma", "digamma", "asin", "sinh", "square", "erf_inv", "tan"))
    p.give(*p.emit(f"chlo.{name}", [x], [x]))


# ---- Shapes ----------------------------------------------------------------------------------------------


def transpose(p: Program) -> None:
    shape, element = p.shape(2, 4), p.element("fibc")
    order = p.random.sample(range(len(shape)), len(shape))
    result = [shape[d] for d in order], element
    p.give(
        *p.emit(
            "stablehlo.transpose", [p.argument(shape, element)], [result], f"permutation = {integers(order)}"
        )
    )


def reshaped(p: Program, shape: Shape) -> list[int]:
    """A random shape with as many elements."""
    left, reshaped = prod(shape), list[int]()
    while left > 1 and len(reshaped) < 4:
        reshaped.append(p.random.choice([d for d in range(2, left + 1) if left % d == 0]))
        left //= reshaped[-1]
    reshaped += [left] if left > 1 else []
    p.random.shuffle(reshaped)
    if p.flip(3):
        reshaped.insert(p.random.randint(0, len(reshaped)), 1)
    return reshaped


def reshape(p: Program) -> None:
    element = p.element("fib")
    shape = p.random.choice((p.shape(), (4, 6), (2, 3, 4), (8, 4), (24,), (2, 2, 2, 3)))
    if p.flip():  # some neighbours merged, and one split
        middle = list(shape)
        if len(middle) > 1:
            d = p.random.randrange(len(middle) - 1)
            middle[d : d + 2] = [middle[d] * middle[d + 1]]
        d = p.random.randrange(len(middle)) if middle else 0
        if middle and p.flip():
            part = p.random.choice([n for n in range(1, middle[d] + 1) if middle[d] % n == 0])
            middle[d : d + 1] = [part, middle[d] // part]
    else:
        middle = reshaped(p, shape)
    p.give(*p.emit("stablehlo.reshape", [p.argument(shape, element)], [(middle, element)]))


def broadcast(p: Program) -> None:
    element, shape = p.element(), p.shape(0, 2)
    result = [p.random.choice((4, 8, 3)) if n == 1 else n for n in shape]
    dims = list(range(len(result)))
    for _ in range(p.random.randint(0, 2)):
        at = p.random.randint(0, len(result))
        result.insert(at, p.random.choice((4, 8, 5, 1)))
        dims = [d + (d >= at) for d in dims]
    order = p.random.sample(range(len(shape)), len(shape)) if shape else []
    operand = p.argument([shape[i] for i in order], element)
    dims = [dims[i] for i in order]
    p.give(
        *p.emit(
            "stablehlo.broadcast_in_dim",
            [operand],
            [(result, element)],
            f"broadcast_dimensions = {integers(dims)}",
        )
    )


def concatenate(p: Program) -> None:
    element, shape = p.element(), p.shape(1)
    d = p.random.randrange(len(shape))
    sizes = [p.random.choice((shape[d], shape[d], 1, 2, 3, 0)) for _ in range(p.random.randint(1, 3))]
    operands = [p.argument([*shape[:d], n, *shape[d + 1 :]], element) for n in sizes]
    result = [*shape[:d], sum(sizes), *shape[d + 1 :]], element
    p.give(*p.emit("stablehlo.concatenate", operands, [result], f"dimension = {d} : i64"))


def slice_(p: Program) -> None:
    element, shape = p.element(), p.shape(1)
    starts = [p.random.choice((0, 0, p.random.randint(0, n))) for n in shape]
    limits = [p.random.choice((n, p.random.randint(s, n))) for s, n in zip(starts, shape, strict=True)]
    strides = [p.random.choice((1, 1, 2, 3)) for _ in shape]
    sizes = [-(-(b - a) // c) for a, b, c in zip(starts, limits, strides, strict=True)]
    properties = (
        f"start_indices = {integers(starts)}, limit_indices = {integers(limits)}, "
        f"strides = {integers(strides)}"
    )
    p.give(*p.emit("stablehlo.slice", [p.argument(shape, element)], [(sizes, element)], properties))


def _starts(p: Program, count: int) -> list[Value]:
    kind = p.random.choice(("i32", "i32", "i64", "ui8", "ui32"))
    return [
        p.argument((), kind, -1, 6) if p.flip() else p.constant(p.random.randint(0, 3), (), kind)
        for _ in range(count)
    ]


def _part(p: Program, shape: Shape) -> list[int]:
    return [p.random.choice((n, n, max(n // 2, 1), max(n - 1, 1))) for n in shape]


def dynamic_slice(p: Program) -> None:
    element, shape = p.element(), p.shape(1)
    sizes = _part(p, shape)
    operands = [p.argument(shape, element), *_starts(p, len(shape))]
    p.give(
        *p.emit("stablehlo.dynamic_slice", operands, [(sizes, element)], f"slice_sizes = {integers(sizes)}")
    )


def dynamic_update_slice(p: Program) -> None:
    element, shape = p.element(), p.shape(1)
    x, update = p.argument(shape, element), p.argument(_part(p, shape), element)
    p.give(*p.emit("stablehlo.dynamic_update_slice", [x, update, *_starts(p, len(shape))], [x]))


def pad(p: Program) -> None:
    element, shape = p.element(), p.shape(1)
    while True:
        low, high = ([p.random.choice((0, 0, 0, 1, 2, -1, -2)) for _ in shape] for _ in range(2))
        inner = [p.random.choice((0, 0, 0, 1, 2)) for _ in shape]
        result = [a + n + b + (n - 1) * c for n, a, b, c in zip(shape, low, high, inner, strict=True)]
        if min(result) >= 0:
            break
    properties = (
        f"edge_padding_low = {integers(low)}, edge_padding_high = {integers(high)}, "
        f"interior_padding = {integers(inner)}"
    )
    p.give(
        *p.emit(
            "stablehlo.pad",
            [p.argument(shape, element), p.argument((), element)],
            [(result, element)],
            properties,
        )
    )


def reverse(p: Program) -> None:
    element, shape = p.element("fibc"), p.shape(1)
    dims = sorted(p.random.sample(range(len(shape)), p.random.randint(1, len(shape))))
    x = p.argument(shape, element)
    p.give(*p.emit("stablehlo.reverse", [x], [x], f"dimensions = {integers(dims)}"))


def iota(p: Program) -> None:
    shape = p.shape(1)
    result = shape, p.element()
    d = p.random.randrange(len(shape))
    (x,) = p.emit("stablehlo.iota", [], [result], f"iota_dimension = {d} : i64")
    p.give(x, *p.emit("stablehlo.add", [x, p.argument(*result)], [result]))


def constant(p: Program) -> None:
    shape, element = p.shape(1), p.random.choice(("f32", "i32"))
    values = array(p.random, shape, element)
    x = p.constant(str(values.tolist()), shape, element)
    p.give(x, *p.emit("stablehlo.add", [x, p.argument(shape, element)], [x]))


# ---- Contractions, reductions ----------------------------------------------------------------------------


def dot_general(p: Program) -> None:
    element = p.random.choice(("f32", "f32", "i32", "bf16", "complex<f32>", "f64"))
    x = p.shape(1, 4)
    y, batch, contracting = list[int](), list[tuple[int, int]](), list[tuple[int, int]]()
    kinds = [p.random.choice("bck") for _ in x]
    order = p.random.sample(range(len(x)), len(x))
    for i in order:
        if kinds[i] != "k":
            (batch if kinds[i] == "b" else contracting).append((i, len(y)))
            y.append(x[i])
    y += [p.random.choice((4, 3, 8)) for _ in range(p.random.randint(0, 1))]
    places = p.random.sample(range(len(y)), len(y))
    y = [y[i] for i in places]
    batch, contracting = ([(i, places.index(j)) for i, j in pairs] for pairs in (batch, contracting))
    used = [{pair[k] for pair in batch + contracting} for k in (0, 1)]
    shape = [x[i] for i, _ in batch] + [n for i, n in enumerate(x) if i not in used[0]]
    shape += [n for i, n in enumerate(y) if i not in used[1]]
    numbers = ", ".join(
        f"{side}_{kind}_dimensions = [{', '.join(str(pair[k]) for pair in pairs)}]"
        for kind, pairs in (("batching", batch), ("contracting", contracting))
        for k, side in enumerate(("lhs", "rhs"))
    )
    to = "f32" if element == "bf16" and p.flip() else element
    p.give(
        *p.emit(
            "stablehlo.dot_general",
            [p.argument(x, element), p.argument(y, element)],
            [(shape, to)],
            f"dot_dimension_numbers = #stablehlo.dot<{numbers}>",
        )
    )


def _windows(p: Program, sizes: Sequence[int], *, base: bool = True) -> tuple[list[list[int]], list[int]]:
    """Window sizes, strides, low and high padding, base and window dilation per dimension; result sizes."""
    found, results = [], []
    for n in sizes:
        while True:
            window, stride = p.random.choice((1, 1, 2, 3, min(n, 8))), p.random.choice((1, 1, 2, 3))
            low, high = p.random.choice((0, 0, 1, 2, -1, window - 1)), p.random.choice((0, 0, 1, 2, -1))
            dilation, hole = p.random.choice((1, 1, 1, 2)) if base else 1, p.random.choice((1, 1, 1, 2))
            if p.flip():
                window, stride, low, high, dilation, hole = 1, 1, 0, 0, 1, 1
            out = (low + high + (n - 1) * dilation + 1 - ((window - 1) * hole + 1)) // stride + 1
            shifted = low < 0 < high  # XLA for CPUs reads past the end, on one device too
            if out > 0 and n > 0 and not shifted:
                break
        found.append([window, stride, low, high, dilation, hole])
        results.append(out)
    return found, results


def convolution(p: Program) -> None:
    element = p.random.choice(("f32", "f32", "bf16", "i32"))
    spatial = [p.random.choice((4, 8, 6, 5, 7)) for _ in range(p.random.choice((1, 2, 2)))]
    groups, batches = p.random.choice(((1, 1), (1, 1), (2, 1), (4, 1), (1, 2), (1, 4)))
    batch, features = p.random.choice((4, 8, 3, 6)) * batches, p.random.choice((1, 2, 3, 4)) * groups
    out_features = p.random.choice((1, 2, 3, 4)) * groups * batches
    windows, outs = _windows(p, spatial)
    n = len(spatial)
    kernel = [w[0] for w in windows]

    def order(kinds: tuple[str, ...], sizes: list[int]) -> tuple[list[str], list[int]]:
        places = p.random.sample(range(n + 2), n + 2)
        return [kinds[i] for i in places], [sizes[i] for i in places]

    names = tuple(map(str, range(n)))
    left, x = order(("b", "f", *names), [batch, features, *spatial])
    middle, k = order(("i", "o", *names), [features // groups, out_features, *kernel])
    right, result = order(("b", "f", *names), [batch // batches, out_features, *outs])
    numbers = f"[{', '.join(left)}]x[{', '.join(middle)}]->[{', '.join(right)}]"
    pads = ", ".join(f"[{w[2]}, {w[3]}]" for w in windows)
    flags = ", ".join(p.random.choice(("false", "false", "true")) for _ in spatial)
    properties = (
        f"dimension_numbers = #stablehlo.conv<{numbers}>, feature_group_count = {groups} : i64, "
        f"batch_group_count = {batches} : i64, window_strides = {integers([w[1] for w in windows])}, "
        f"padding = dense<[{pads}]> : tensor<{n}x2xi64>, lhs_dilation = {integers([w[4] for w in windows])}, "
        f"rhs_dilation = {integers([w[5] for w in windows])}, window_reversal = array<i1: {flags}>"
    )
    p.give(
        *p.emit(
            "stablehlo.convolution",
            [p.argument(x, element), p.argument(k, element)],
            [(result, element)],
            properties,
        )
    )


_BODIES = {
    "f": ("add", "maximum", "minimum", "add"),
    "i": ("add", "maximum", "minimum", "multiply", "and", "or"),
    "b": ("and", "or", "xor"),
    "c": ("add",),
}
_INITIAL = {"add": 0, "or": 0, "xor": 0, "multiply": 1, "maximum": -9, "minimum": 9, "and": -1}


def reduce(p: Program) -> None:
    kind = p.random.choice("fiibc")
    element, shape = p.element(kind), p.shape(1, 4)
    name = p.random.choice(_BODIES[kind])
    dims = p.random.sample(range(len(shape)), p.random.randint(1, len(shape)))
    if name == "multiply" and element[0] != "i":
        name = "add"
    result = [n for d, n in enumerate(shape) if d not in dims], element
    neutral = _INITIAL[name]
    if element[0] == "u":
        neutral = {"maximum": 0, "and": 2 ** int(element[2:]) - 1}.get(name, neutral)
    if element == "i1":
        neutral = abs(neutral)
    # XLA leaves out what is not neutral where a dimension has one element.
    constant = p.constant(neutral, (), element)
    (initial,) = p.emit("stablehlo.optimization_barrier", [constant], [constant]) if p.flip() else (constant,)
    p.give(
        *p.emit(
            "stablehlo.reduce",
            [p.argument(shape, element), initial],
            [result],
            f"dimensions = {integers(sorted(dims))}",
            [p.folded(name, element)],
        )
    )


def argmax(p: Program) -> None:
    """The largest element and where it is: the first of equal ones."""
    shape = p.shape(1)
    d = p.random.randrange(len(shape))
    x = p.argument(shape)
    (at,) = p.emit("stablehlo.iota", [], [(shape, "i32")], f"iota_dimension = {d} : i64")
    arguments = [Value("", (), t) for t in ("f32", "i32", "f32", "i32")]
    (a, i, b, j), outer = p.nested(arguments)

    def emit(op: str, operands: Sequence[Value], element: str, properties: str = "") -> Value:
        return p.emit(f"stablehlo.{op}", operands, [((), element)], properties, bare=True)[0]

    more, same = (emit("compare", [a, b], "i1", _compare(how)) for how in ("GT", "EQ"))
    first = emit("compare", [i, j], "i1", _compare("LT"))
    takes = emit("or", [more, emit("and", [same, first], "i1")], "i1")
    best = [emit("select", [takes, a, b], "f32"), emit("select", [takes, i, j], "i32")]
    body = p.end(outer, best)
    start = [p.constant("0xFF800000", (), "f32"), p.constant(2**31 - 1)]
    result = [n for e, n in enumerate(shape) if e != d]
    p.give(
        *p.emit(
            "stablehlo.reduce",
            [x, at, *start],
            [(result, "f32"), (result, "i32")],
            f"dimensions = {integers([d])}",
            [body],
        )
    )


def reduce_window(p: Program) -> None:
    element, shape = p.random.choice(("f32", "i32")), p.shape(1)
    name = p.random.choice(("add", "maximum"))
    windows, result = _windows(p, shape)
    columns = list(zip(*windows, strict=True))
    pads = ", ".join(f"[{w[2]}, {w[3]}]" for w in windows)
    properties = (
        f"window_dimensions = {integers(columns[0])}, window_strides = {integers(columns[1])}, "
        f"base_dilations = {integers(columns[4])}, window_dilations = {integers(columns[5])}, "
        f"padding = dense<[{pads}]> : tensor<{len(shape)}x2xi64>"
    )
    p.give(
        *p.emit(
            "stablehlo.reduce_window",
            [p.argument(shape, element), p.constant(0, (), element)],
            [(result, element)],
            properties,
            [p.folded(name, element)],
        )
    )


def select_and_scatter(p: Program) -> None:
    shape = p.shape(1)
    windows, result = [], []
    for n in shape:
        window = p.random.choice((1, 1, min(2, n), min(3, n)))
        stride, low = p.random.choice((1, window)), p.random.choice((0, window - 1))
        windows.append((window, stride, low))
        result.append((n + low - window) // stride + 1)
    a, b, c = p.new(), p.new(), p.new()
    chooses = (
        f'^bb0({a}: tensor<f32>, {b}: tensor<f32>):\n{c} = "stablehlo.compare"({a}, {b}) '
        f"<{{{_compare('GE')}}}> : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        f'"stablehlo.return"({c}) : (tensor<i1>) -> ()\n'
    )
    pads = ", ".join(f"[{low}, 0]" for *_, low in windows)
    properties = (
        f"window_dimensions = {integers([w[0] for w in windows])}, "
        f"window_strides = {integers([w[1] for w in windows])}, padding = dense<[{pads}]> : "
        f"tensor<{len(shape)}x2xi64>"
    )
    x = p.argument(shape)
    # The order of elements in place of them: which of equal ones XLA selects depends on the padding.
    order = p.arrays[-1].ravel().argsort(kind="stable").argsort()
    p.arrays[-1] = order.astype(np.float32).reshape(shape) - len(order) // 2
    p.give(
        *p.emit(
            "stablehlo.select_and_scatter",
            [x, p.argument(result), p.constant(0, (), "f32")],
            [x],
            properties,
            [chooses, p.folded("add", "f32")],
        )
    )


def sort(p: Program) -> None:
    element, shape = p.random.choice(("f32", "i32")), p.shape(1)
    x = p.argument(shape, element)
    others = [p.argument(shape, "i32")] if p.flip() else []
    arguments = [Value("", (), v.element) for v in (x, *others) for _ in range(2)]
    inner, outer = p.nested(arguments)
    (less,) = p.emit("stablehlo.compare", inner[:2], [((), "i1")], _compare("LT"), bare=True)
    d = p.random.randrange(len(shape))
    p.give(
        *p.emit(
            "stablehlo.sort",
            [x, *others],
            [x, *others],
            f"dimension = {d} : i64, is_stable = true",
            [p.end(outer, [less])],
        )
    )


def top_k(p: Program) -> None:
    shape = p.shape(1)
    x = p.argument(shape)
    k = p.random.randint(1, shape[-1])
    results = [((*shape[:-1], k), "f32"), ((*shape[:-1], k), "i32")]
    p.give(*p.emit("chlo.top_k", [x], results, f"k = {k} : i64"))


# ---- Indexing --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Indexed:
    """What a gather and a scatter have in common: the operand's shape, its slices and collapsed, batching
    and indexed dims, the indices, and the shape of what is taken or written."""

    shape: Shape
    sizes: list[int]
    collapsed: list[int]
    batching: list[int]
    mapped: list[int]
    loops: list[int]
    at: Value
    vector: int
    index_dims: list[int]
    offsets: list[int]
    windowed: list[int]


def _indexed(p: Program) -> Indexed:
    shape = p.shape(1)
    dims = list(range(len(shape)))
    batching = [d for d in dims if p.flip(5)]
    mapped = [d for d in dims if d not in batching and p.flip()]
    p.random.shuffle(mapped)
    collapsed = [d for d in dims if d not in batching and p.flip() and (d in mapped or shape[d] == 1)]
    sizes = [
        1 if d in collapsed or d in batching else _part(p, (n,))[0] if d in mapped or p.flip(4) else n
        for d, n in enumerate(shape)
    ]
    loops = [p.random.choice((4, 8, 3, 2)) for _ in range(p.random.choice((0, 1, 1, 2)))]
    places = sorted(p.random.sample(range(len(loops) + len(batching)), len(batching)))
    for place, d in zip(places, batching, strict=True):
        loops.insert(place, shape[d])
    vector = p.random.choice((len(loops), p.random.randint(0, len(loops))))
    at = _index_array(p, loops, mapped, vector, shape, sizes)
    vector = min(vector, len(at.shape))
    windows = [n for d, n in enumerate(sizes) if d not in collapsed and d not in batching]
    offsets = sorted(p.random.sample(range(len(loops) + len(windows)), len(windows)))
    rest, inside = iter(loops), iter(windows)
    windowed = [next(inside) if d in offsets else next(rest) for d in range(len(loops) + len(windows))]
    index_dims = [q + (q >= vector and len(at.shape) > len(loops)) for q in places]
    return Indexed(
        shape, sizes, collapsed, batching, mapped, loops, at, vector, index_dims, offsets, windowed
    )


def _index_array(
    p: Program, loops: list[int], mapped: list[int], vector: int, shape: Shape, sizes: list[int]
) -> Value:
    """Places, some of them outside."""
    kind = p.random.choice(("i32", "i32", "i64", "ui8", "ui32"))
    full = [*loops[:vector], len(mapped), *loops[vector:]]
    if len(mapped) == 1 and vector == len(loops) and p.flip():
        full = loops
    most = max([shape[d] - sizes[d] for d in mapped] or [0])
    return p.argument(full, kind, -1, most + 1)


def gather(p: Program) -> None:
    element = p.element("fib")
    i = _indexed(p)
    numbers = (
        f"offset_dims = {i.offsets}, collapsed_slice_dims = {i.collapsed}, "
        f"operand_batching_dims = {i.batching}, start_indices_batching_dims = {i.index_dims}, "
        f"start_index_map = {i.mapped}, index_vector_dim = {i.vector}"
    )
    properties = (
        f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = {integers(i.sizes)}, "
        "indices_are_sorted = false"
    )
    p.give(
        *p.emit("stablehlo.gather", [p.argument(i.shape, element), i.at], [(i.windowed, element)], properties)
    )


def scatter(p: Program) -> None:
    kind = p.random.choice("fi")
    element = p.element(kind)
    name = p.random.choice(_BODIES[kind])
    i = _indexed(p)
    numbers = (
        f"update_window_dims = {i.offsets}, inserted_window_dims = {i.collapsed}, "
        f"input_batching_dims = {i.batching}, scatter_indices_batching_dims = {i.index_dims}, "
        f"scatter_dims_to_operand_dims = {i.mapped}, index_vector_dim = {i.vector}"
    )
    properties = (
        f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, indices_are_sorted = false, "
        "unique_indices = false"
    )
    x = p.argument(i.shape, element)
    if not i.loops and p.flip():  # a single place: it may be overwritten
        (_, b), outer = p.nested([Value("", (), element)] * 2)
        body = p.end(outer, [b])
    else:
        body = p.folded("add" if name == "multiply" else name, element)
    p.give(*p.emit("stablehlo.scatter", [x, i.at, p.argument(i.windowed, element)], [x], properties, [body]))


# ---- Matrices, numbers -----------------------------------------------------------------------------------


def fft(p: Program) -> None:
    shape = list(p.shape(1))
    kind = p.random.choice(("FFT", "IFFT", "RFFT", "IRFFT"))
    count = p.random.randint(1, min(2, len(shape)))
    length = shape[-count:]
    half = [*shape[:-1], shape[-1] // 2 + 1]
    of = {"RFFT": (shape, "f32"), "IRFFT": (half, "complex<f32>")}.get(kind, (shape, "complex<f32>"))
    to = {"RFFT": (half, "complex<f32>"), "IRFFT": (shape, "f32")}.get(kind, (shape, "complex<f32>"))
    p.give(
        *p.emit(
            "stablehlo.fft",
            [p.argument(*of)],
            [to],
            f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {integers(length)}",
        )
    )


def _positive(p: Program, shape: Shape) -> Value:
    a = array(p.random, shape, "f32").astype("float64")
    value = a @ np.swapaxes(a, -1, -2) + 8 * np.eye(shape[-1])
    return p.argument(shape, value=value.astype("float32"))


def cholesky(p: Program) -> None:
    n = p.random.choice((4, 3, 8))
    shape = (*p.shape(0, 2), n, n)
    x = _positive(p, shape)
    (low,) = p.emit("stablehlo.cholesky", [x], [x], "lower = true")
    p.give(low)


def triangular_solve(p: Program) -> None:
    n, m, batch = p.random.choice((4, 3, 8)), p.random.choice((4, 5)), p.shape(0, 2)
    a = _positive(p, (*batch, n, n))
    left = p.flip()
    b = p.argument((*batch, n, m) if left else (*batch, m, n))
    properties = (
        f"left_side = {str(left).lower()}, lower = {str(p.flip()).lower()}, unit_diagonal = false, "
        "transpose_a = #stablehlo<transpose NO_TRANSPOSE>"
    )
    p.give(*p.emit("stablehlo.triangular_solve", [a, b], [b], properties))


def random_bits(p: Program) -> None:
    shape, element = p.shape(), p.random.choice(("ui32", "ui64", "ui8"))
    algorithm, size = p.random.choice((("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2)))
    state = p.argument((size,), "ui64", 0, 100)
    p.give(
        *p.emit(
            "stablehlo.rng_bit_generator",
            [state],
            [state, (shape, element)],
            f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>",
        )
    )


def batch_norm(p: Program) -> None:
    shape = p.shape(2, 4)
    d = p.random.randrange(len(shape))
    x, row = p.argument(shape), (shape[d],)
    scale, offset = p.argument(row), p.argument(row)
    common = f"epsilon = 1.0e-2 : f32, feature_index = {d} : i64"
    kind = p.random.choice(("training", "inference", "grad"))
    if kind == "training":
        p.give(*p.emit("stablehlo.batch_norm_training", [x, scale, offset], [x, scale, scale], common))
        return
    mean, variance = p.argument(row), p.argument(row, "f32", 1, 4)
    if kind == "inference":
        p.give(*p.emit("stablehlo.batch_norm_inference", [x, scale, offset, mean, variance], [x], common))
    else:
        p.give(
            *p.emit(
                "stablehlo.batch_norm_grad",
                [x, scale, mean, variance, p.argument(shape)],
                [x, scale, scale],
                common,
            )
        )


# ---- Dynamic ops with static shapes ----------------------------------------------------------------------


def dynamic(p: Program) -> None:
    shape = p.shape(1)
    x = p.argument(shape)
    rank = len(shape)

    def numbers(values: Sequence[int]) -> Value:
        return p.constant(str(list(values)), (len(values),), "i32")

    kind = p.random.randrange(4)
    if kind == 0:
        p.give(
            *p.emit(
                "stablehlo.dynamic_broadcast_in_dim",
                [x, numbers((3, *shape))],
                [((3, *shape), "f32")],
                f"broadcast_dimensions = {integers(range(1, rank + 1))}",
            )
        )
    elif kind == 1:
        to = reshaped(p, shape)
        if to:
            p.give(*p.emit("stablehlo.dynamic_reshape", [x, numbers(to)], [(to, "f32")]))
    elif kind == 2:
        p.give(*p.emit("stablehlo.dynamic_iota", [numbers(shape)], [x], "iota_dimension = 0 : i64"))
    else:
        low = [p.random.choice((0, 1)) for _ in shape]
        high = [p.random.choice((0, 2)) for _ in shape]
        result = [a + n + b for a, n, b in zip(low, shape, high, strict=True)]
        operands = [x, p.constant(7, (), "f32"), numbers(low), numbers(high), numbers([0] * rank)]
        p.give(*p.emit("stablehlo.dynamic_pad", operands, [(result, "f32")]))


# ---- Control ---------------------------------------------------------------------------------------------


def loop(p: Program) -> None:
    shape = p.shape(1)
    x, w = p.argument(shape), p.argument(shape)
    start = p.constant(0)
    (i, _), outer = p.nested([start, x])
    (less,) = p.emit("stablehlo.compare", [i, p.constant(3)], [((), "i1")], _compare("LT", "SIGNED"))
    condition = p.end(outer, [less])
    (i, y), outer = p.nested([start, x])
    (next_,) = p.emit("stablehlo.add", [i, p.constant(1)], [i])
    (z,) = p.emit("stablehlo.subtract", [w, y], [x])
    if p.flip():
        d = p.random.randrange(len(shape))
        (z,) = p.emit("stablehlo.reverse", [z], [x], f"dimensions = {integers([d])}")
    body = p.end(outer, [next_, z])
    p.give(p.emit("stablehlo.while", [start, x], [start, x], "", [condition, body])[1])


def branches(p: Program) -> None:
    shape = p.shape(1)
    x, w = p.argument(shape), p.argument(shape)
    regions = []
    for name in ("add", "subtract"):
        _, outer = p.nested([])
        (y,) = p.emit(f"stablehlo.{name}", [x, w], [x])
        regions.append(p.end(outer, [y, w]))
    if p.flip():
        p.give(*p.emit("stablehlo.if", [p.argument((), "i1")], [x, w], "", regions))
    else:
        p.give(*p.emit("stablehlo.case", [p.argument((), "i32", -1, 2)], [x, w], "", regions))


def call(p: Program) -> None:
    shape = p.shape(1)
    x = p.argument(shape)
    t, name = tensor(shape), f"f{len(p.functions)}"
    p.functions.append(
        f"func.func private @{name}(%x: {t}, %y: {t}) -> {t} {{\n"
        f"%z = stablehlo.subtract %x, %y : {t}\nreturn %z : {t}\n}}"
    )
    y = p.argument(shape)
    if p.flip():
        p.give(*p.emit("func.call", [x, y], [x], f"callee = @{name}"))
    else:
        p.give(*p.emit("stablehlo.composite", [x, y], [x], f'name = "own.minus", decomposition = @{name}'))


def barrier(p: Program) -> None:
    x, y = p.argument(p.shape()), p.argument(p.shape(), "i32")
    p.give(*p.emit("stablehlo.optimization_barrier", [x, y], [x, y]))


def chain(p: Program) -> None:
    """Values of one shape through several ops, each with a sharding of its own."""
    shape = p.shape(2, 3)
    values = [p.argument(shape) for _ in range(2)]
    for _ in range(p.random.randint(2, 5)):
        x, y = p.random.choice(values), p.random.choice(values)
        which = p.random.randrange(4)
        if which == 0:
            d = p.random.randrange(len(shape))
            inner = [n for e, n in enumerate(shape) if e != d]
            (r,) = p.emit(
                "stablehlo.reduce",
                [x, p.constant(-1000, (), "f32")],  # below all of them, or XLA may leave it out
                [(inner, "f32")],
                f"dimensions = {integers([d])}",
                [p.folded("maximum", "f32")],
            )
            dims = [e for e in range(len(shape)) if e != d]
            values += p.emit(
                "stablehlo.broadcast_in_dim", [r], [x], f"broadcast_dimensions = {integers(dims)}"
            )
        elif which == 1:
            values += p.emit(f"stablehlo.{p.random.choice(('minimum', 'maximum', 'add'))}", [x, y], [x])
        elif which == 2:
            order = p.random.sample(range(len(shape)), len(shape))
            back = integers([order.index(d) for d in range(len(shape))])
            result = [shape[d] for d in order], "f32"
            (t,) = p.emit("stablehlo.transpose", [x], [result], f"permutation = {integers(order)}")
            values += p.emit("stablehlo.transpose", [t], [x], f"permutation = {back}")
        else:
            values += p.emit("stablehlo.negate", [x], [x])
    p.give(values[-1])


OPS: tuple[Op, ...] = (
    *(unary, binary, division, selection, conversion, complex_numbers, map_, chlo),
    *(transpose, reshape, reshape, broadcast, concatenate, slice_, dynamic_slice, dynamic_update_slice, pad),
    *(reverse, iota, constant, dot_general, dot_general, convolution, convolution, reduce, reduce, argmax),
    *(reduce_window, select_and_scatter, sort, top_k, gather, gather, gather, scatter, scatter, scatter),
    *(
        fft,
        cholesky,
        triangular_solve,
        random_bits,
        batch_norm,
        dynamic,
        loop,
        branches,
        call,
        barrier,
        chain,
    ),
)
