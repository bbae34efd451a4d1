"""Hypothesis: random ops that programs have less often: the rest of StableHLO, CHLO, and known custom calls.

As in `random_ops.py`, each function writes one op (and what brings its result back to f32) into a block.
"""

from __future__ import annotations

from math import prod

from .random_blocks import Block, Value
from .random_ops import folded, integers

UNARY = (
    "cbrt", "ceil", "cosine", "exponential_minus_one", "floor", "log", "log_plus_one", "logistic",
    "round_nearest_afz", "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tan",
)  # fmt: skip
BINARY = ("atan2", "divide", "minimum", "power", "remainder")
BITWISE = ("and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical")
COUNTS = ("count_leading_zeros", "not", "popcnt")
TARGETS = (
    "annotate_device_placement", "Cholesky", "CompactWyHelper", "InspectSharding",
    "InvertDiagBlocksLowerTriangular", "InvertDiagBlocksUpperTriangular", "LayoutConstraint", "mhlo.erf",
    "MoveToDevice", "MoveToHost", "X64Combine", "X64SplitHigh", "X64SplitLow",
    "xla.megascale.provide_metadata", "_SPMDInternalOp_MultiPad", "_SPMDInternalOp_MultiRotate",
    "_SPMDInternalOp_MultiSlice", "_SPMDInternalOp_RotateRight", "_SPMDInternalOp_Wrap",
    "tpu_custom_call", "unknown",
)  # fmt: skip
CHLO = ("erf", "erf_inv", "lgamma", "square", "asin", "tan", "conj")
GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"


def back(b: Block, x: Value) -> None:
    """The value as f32."""
    b.emit("stablehlo.convert", [x], [(x.shape, "f32")])


def elementwise(b: Block) -> None:
    x = b.pick()
    if not x:
        return
    y = b.pick(x.shape) or x
    match b.number(0, 5):
        case 0:
            b.emit(f"stablehlo.{b.choose(UNARY)}", [x], [(x.shape, "f32")])
        case 1:
            b.emit(f"stablehlo.{b.choose(BINARY)}", [x, y], [(x.shape, "f32")])
        case 2:
            properties = "exponent_bits = 5 : i32, mantissa_bits = 10 : i32"
            b.emit("stablehlo.reduce_precision", [x], [(x.shape, "f32")], properties)
        case 3:
            (z,) = b.emit("stablehlo.complex", [x, y], [(x.shape, "complex<f32>")])
            b.emit(f"stablehlo.{b.choose(('real', 'imag'))}", [z], [(x.shape, "f32")])
        case 4:
            (p,) = b.emit("stablehlo.is_finite", [x], [(x.shape, "i1")])
            (q,) = b.emit("stablehlo.not", [p], [(x.shape, "i1")])
            b.emit("stablehlo.select", [q, x, y], [(x.shape, "f32")])
        case _:
            m, n = (b.emit("stablehlo.convert", [v], [(x.shape, "i32")])[0] for v in (x, y))
            (k,) = b.emit(f"stablehlo.{b.choose(BITWISE)}", [m, n], [(x.shape, "i32")])
            back(b, b.emit(f"stablehlo.{b.choose(COUNTS)}", [k], [(x.shape, "i32")])[0])


def chlo(b: Block) -> None:
    x = b.pick()
    if x:
        b.emit(f"chlo.{b.choose(CHLO)}", [x], [(x.shape, "f32")])


def dot(b: Block) -> None:
    x = b.pick(rank=1)
    if not x or len(x.shape) > 2:
        return
    fitting = [v for v in b.values if v.element == "f32" and v.shape[:1] == x.shape[-1:] and len(v.shape) < 3]
    if fitting:
        y = b.choose(fitting)
        b.emit("stablehlo.dot", [x, y], [((*x.shape[:-1], *y.shape[1:]), "f32")])


def matrices(b: Block) -> None:
    """Decompositions and solutions of the last two dimensions."""
    x = b.pick(rank=2)
    if not x:
        return
    *batch, m, n = x.shape
    side, left = b.choose(((m, True), (n, False)))
    square = (*batch, side, side)
    a = b.pick(square) or b.emit("stablehlo.iota", [], [(square, "f32")], "iota_dimension = 0 : i64")[0]
    match b.number(0, 3):
        case 0:
            b.emit("stablehlo.cholesky", [a], [(square, "f32")], "lower = true")
        case 1:
            properties = (
                f"left_side = {str(left).lower()}, lower = true, unit_diagonal = false, "
                f"transpose_a = #stablehlo<transpose {b.choose(('NO_TRANSPOSE', 'TRANSPOSE', 'ADJOINT'))}>"
            )
            b.emit("stablehlo.triangular_solve", [a, x], [(x.shape, "f32")], properties)
        case 2:
            results = [(x.shape, "f32"), ((*batch, min(m, n)), "f32")]
            target = b.choose(("Qr", "QrDecompositionBlock"))
            b.emit("stablehlo.custom_call", [x], results, f'call_target_name = "{target}"')
        case _:
            results = [(square, "f32"), ((*batch, side), "f32")]
            b.emit("stablehlo.custom_call", [a], results, 'call_target_name = "Eigh"')


def fft(b: Block) -> None:
    x = b.pick(rank=1)
    if not x:
        return
    count = b.number(1, min(3, len(x.shape)))
    kind = b.choose(("FFT", "IFFT", "RFFT"))
    half = (*x.shape[:-1], x.shape[-1] // 2 + 1) if kind == "RFFT" else x.shape
    z = x if kind == "RFFT" else b.emit("stablehlo.complex", [x, x], [(x.shape, "complex<f32>")])[0]
    properties = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {integers(x.shape[-count:])}"
    (y,) = b.emit("stablehlo.fft", [z], [(half, "complex<f32>")], properties)
    b.emit("stablehlo.real", [y], [(half, "f32")])


def batch_norm(b: Block) -> None:
    x = b.pick(rank=1)
    if x:
        d = b.number(0, len(x.shape) - 1)
        shape = (x.shape[d],)
        others = [b.pick(shape) or b.constant(shape) for _ in range(4)]
        properties = f"epsilon = 1.0 : f32, feature_index = {d} : i64"
        b.emit("stablehlo.batch_norm_inference", [x, *others], [(x.shape, "f32")], properties)


def largest(b: Block) -> None:
    """The largest elements along a dimension."""
    x = b.pick(rank=1)
    if not x:
        return
    d = b.choose([len(x.shape) - 1, b.number(0, len(x.shape) - 1)])
    shape = tuple(b.choose((1, n, max(n // 2, 1))) if i == d else n for i, n in enumerate(x.shape))
    results = [(shape, "f32"), (shape, "i32")]
    if b.flip():
        b.emit("stablehlo.custom_call", [x], results, 'call_target_name = "mhlo.topk"')
    else:
        (at,) = b.emit("stablehlo.iota", [], [(x.shape, "i32")], f"iota_dimension = {d} : i64")
        operands = [x, at, b.constant(), b.constant((), "i32")]
        target = b.choose(("ApproxTopK", "PartialReduce"))
        b.emit("stablehlo.custom_call", operands, results, f'call_target_name = "{target}"')


def call(b: Block) -> None:
    x = b.pick()
    if x:
        target = b.choose(TARGETS)
        operands = [x, b.pick(x.shape) or x] if target == "X64Combine" else [x]
        b.emit("stablehlo.custom_call", operands, [(x.shape, "f32")], f'call_target_name = "{target}"')


def collective(b: Block) -> None:
    x = b.pick(rank=1)
    if not x or max(prod(size for _, size in mesh.axes) for mesh in b.module.meshes) < 2:
        return  # groups and pairs are of two devices
    d = b.number(0, len(x.shape) - 1)
    e = b.number(0, len(x.shape) - 1)
    even = [i for i, n in enumerate(x.shape) if n % 2 == 0]
    match b.choose(("gather", "reduce", "broadcast", "permute", *(("scatter", "exchange") if even else ()))):
        case "gather":
            shape = [2 * n if i == d else n for i, n in enumerate(x.shape)]
            b.emit("stablehlo.all_gather", [x], [(shape, "f32")], f"all_gather_dim = {d} : i64, {GROUPS}")
        case "reduce":
            b.emit("stablehlo.all_reduce", [x], [(x.shape, "f32")], GROUPS, regions=[folded(b)])
        case "broadcast":
            name = b.choose(("collective_broadcast", "cross-replica-sum"))
            b.emit(f"stablehlo.{name}", [x], [(x.shape, "f32")], GROUPS)
        case "permute":
            pairs = "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>"
            b.emit("stablehlo.collective_permute", [x], [(x.shape, "f32")], pairs)
        case "scatter":
            s = b.choose(even)
            shape = [n // 2 if i == s else n for i, n in enumerate(x.shape)]
            properties = f"scatter_dimension = {s} : i64, {GROUPS}"
            b.emit("stablehlo.reduce_scatter", [x], [(shape, "f32")], properties, regions=[folded(b)])
        case _:
            s = b.choose(even)
            shape = [n // 2 if i == s else n for i, n in enumerate(x.shape)]
            shape[e] *= 2
            properties = f"split_dimension = {s} : i64, concat_dimension = {e} : i64, split_count = 2 : i64"
            b.emit("stablehlo.all_to_all", [x], [(shape, "f32")], f"{properties}, {GROUPS}")


def barrier(b: Block) -> None:
    """Shardings pass it in some directions only: 0 none, 1 forward, 2 backward."""
    x = b.pick()
    if x:
        properties = f"allowed_direction = {b.number(0, 2)} : i32"
        b.emit("sdy.propagation_barrier", [x], [(x.shape, "f32")], properties, bare=True)


LIBRARY = (
    elementwise, elementwise, chlo, dot, matrices, fft, batch_norm, largest, call, collective, barrier,
)  # fmt: skip
