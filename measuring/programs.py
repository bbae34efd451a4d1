"""Programs with which a machine is measured: `python -m shardlog.measuring draw`.

Each is one op, or a few. Shapes and types are drawn, from a fixed seed. Each round has some programs of each
kind; ``OUT`` is gzipped JSON, a list of objects with ``kind``, ``name`` and ``text`` (StableHLO). The machine
is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import DTypeLike

from .data import write

Made = tuple[str, Callable[..., Any], list[Any]]  # a name, a function, and the types of its arguments

SIZES = [1, 16, 32, 64, 100, 128, 192, 256, 384, 512, 768, 1000, 1024, 1536, 2048, 3072, 4096, 5120, 8192]
LARGE = [size for size in SIZES if size >= 128]
INNER = [1, 16, 32, 64, 100, 128, 192, 256, 384, 512, 1024, 1536]  # of batches of matrices
POWERS = [512, 1024, 2048, 4096, 8192]
TYPES: dict[str, Any] = {"bfloat16": jnp.bfloat16, "float32": jnp.float32, "float16": jnp.float16}
# Bytes of arguments, by the platform for which programs are lowered.
ARGUMENT_BYTES = {"cuda": 2**31, "tpu": 2**31, "cpu": 2**24}

UNARY: dict[str, Callable[[Any], Any]] = {
    "tanh": jnp.tanh,
    "exp": jnp.exp,
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "square": jnp.square,
    "log1p": jnp.log1p,
    "sin": jnp.sin,
    "sqrt": jnp.sqrt,
    "half": lambda x: x * 0.5,
    "rsqrt": lax.rsqrt,
    "erf": lax.erf,
    "div": lambda x: 1 / (x + 2),
    "sigmoid": jax.nn.sigmoid,
    "cos": jnp.cos,
    "pow": lambda x: x**1.5,
}


def layernorm(x: jax.Array) -> jax.Array:
    """Rows with mean 0 and variance 1."""
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def rmsnorm(x: jax.Array) -> jax.Array:
    """Rows with mean square 1."""
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


ROWS: dict[str, Callable[[Any], Any]] = {
    "softmax": jax.nn.softmax,
    "log_softmax": jax.nn.log_softmax,
    "layernorm": layernorm,
    "rmsnorm": rmsnorm,
    "absmax": lambda x: x / (jnp.abs(x).max(-1, keepdims=True) + 1),
    "logsumexp": lambda x: jax.nn.logsumexp(x, -1),
}


def attention(q: jax.Array, k: jax.Array, v: jax.Array, causal: bool) -> jax.Array:
    """Attention of (batch, position, head, feature)."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def gated(x: jax.Array, gain: jax.Array, gate: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """The gated feed-forward block of a transformer, with its normalisation."""
    h = rmsnorm(x) * gain
    return x + (jax.nn.silu(h @ gate) * (h @ up)) @ down


def programs(rounds: int, seed: int = 0, platform: str = "cuda") -> Iterator[tuple[str, str, str]]:
    """The kind, the name and the text of each program, lowered for a platform."""
    drawn, seen = ProgramKinds(Random(seed)), set[tuple[str, str]]()
    for _ in range(rounds):
        for kind, (make, count) in drawn.kinds().items():
            for _ in range(count):
                name, function, arguments = make()
                size = sum(a.size * a.dtype.itemsize for a in arguments)
                if size <= ARGUMENT_BYTES[platform] and (kind, name) not in seen:
                    seen.add((kind, name))
                    traced = jax.jit(function).trace(*arguments)
                    yield kind, name, traced.lower(lowering_platforms=(platform,)).as_text()


class ProgramKinds:
    """The kinds of programs. Sizes and types of a program are drawn at random."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def kinds(self) -> dict[str, tuple[Callable[[], Made], int]]:
        """The function that makes a program of each kind, and the number of them in a round."""
        return {
            "dot": (self.dot, 4),
            "square": (self.square, 3),
            "i8": (self.i8, 1),
            "f8": (self.f8, 1),
            "bmm": (self.bmm, 3),
            "fused_dot": (self.fused_dot, 2),
            "chain": (self.chain, 4),
            "rows": (self.rows, 3),
            "rows_grad": (self.rows_grad, 1),
            "reduce": (self.reduce, 3),
            "data": (self.data, 3),
            "indexed": (self.indexed, 3),
            "ordered": (self.ordered, 2),
            "attention": (self.attention, 2),
            "conv": (self.conv, 3),
            "glu": (self.glu, 1),
            "loop": (self.loop, 2),
            "linear": (self.linear, 1),
            "drawn": (self.drawn, 1),
            "pool": (self.pool, 1),
            "training": (self.training, 2),
        }

    def _type(self, *names: str) -> str:
        return self.random.choice(names or ("bfloat16", "float32"))

    def _sizes(self, sizes: list[int], count: int = 3) -> list[int]:
        return [self.random.choice(sizes) for _ in range(count)]

    def dot(self) -> Made:
        """A product of matrices of any sizes."""
        r, type_ = self.random, self._type("bfloat16", "bfloat16", "float32", "float16")
        m, k, n = self._sizes(SIZES)
        lhs, rhs = r.choice(["mk", "mk", "km"]), r.choice(["kn", "kn", "nk"])
        spec, shapes = f"{lhs},{rhs}->mn", _shapes((lhs, rhs), {"m": m, "k": k, "n": n}, type_)
        return f"{lhs},{rhs} {m}x{k}x{n} {type_}", lambda a, b: jnp.einsum(spec, a, b), shapes

    def square(self) -> Made:
        """A product of large matrices."""
        type_ = self._type("bfloat16", "float32", "float16")
        m, k, n = self._sizes(LARGE[3:])
        return (
            f"{m}x{k}x{n} {type_}",
            lambda a, b: a @ b,
            _shapes(("mk", "kn"), {"m": m, "k": k, "n": n}, type_),
        )

    def i8(self) -> Made:
        """A product of whole numbers."""
        m, k, n = self._sizes(POWERS)
        function = lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32)  # noqa: E731
        return f"{m}x{k}x{n}", function, [_of((m, k), jnp.int8), _of((k, n), jnp.int8)]

    def f8(self) -> Made:
        """A product of floats of eight bits."""
        m, k, n = self._sizes(POWERS)
        function = lambda a, b: lax.dot(a, b, preferred_element_type=jnp.bfloat16)  # noqa: E731
        return f"{m}x{k}x{n}", function, [_of((m, k), jnp.float8_e4m3fn), _of((k, n), jnp.float8_e4m3fn)]

    def bmm(self) -> Made:
        """Products of a batch of matrices."""
        r, type_ = self.random, self._type()
        b = r.choice([2, 8, 16, 64, 256])
        m, k, n = self._sizes(INNER)
        spec = r.choice(["bmk,bkn->bmn", "bmk,bnk->bmn", "bkm,bkn->bmn"])
        shapes = _shapes(spec.split("->")[0].split(","), {"b": b, "m": m, "k": k, "n": n}, type_)
        return f"{spec} {b},{m},{k},{n} {type_}", lambda x, y: jnp.einsum(spec, x, y), shapes

    def fused_dot(self) -> Made:
        """A product, and ops on its result."""
        type_ = self._type()
        m, k, n = self._sizes(LARGE)
        name = self.random.choice(["bias relu", "gelu", "residual"])
        functions: dict[str, Callable[..., Any]] = {
            "bias relu": lambda x, w, y: jax.nn.relu(x @ w + y[0]),
            "gelu": lambda x, w, y: jax.nn.gelu(x @ w),
            "residual": lambda x, w, y: y + x @ w,
        }
        shapes = _shapes(("mk", "kn", "mn"), {"m": m, "k": k, "n": n}, type_)
        return f"{name} {m}x{k}x{n} {type_}", functions[name], shapes

    def chain(self) -> Made:
        """Ops that compute element by element."""
        r, type_ = self.random, self._type()
        count, size, two = r.randint(1, 10), 2 ** r.randint(10, 26), r.random() < 0.5
        names = [r.choice(sorted(UNARY)) for _ in range(count)]

        def function(x: jax.Array, *others: jax.Array) -> jax.Array:
            for other in others:
                x = x + other
            for name in names:
                x = UNARY[name](x)
            return x

        label = f"{'-'.join(names)} {size} {'two' if two else 'one'} {type_}"
        return label, function, [_of((size,), TYPES[type_])] * (1 + two)

    def rows(self) -> Made:
        """Normalisations of rows, and the like."""
        r, type_ = self.random, self._type()
        name, m, k = r.choice(sorted(ROWS)), r.choice(LARGE), r.choice([*LARGE, 32768])
        return f"{name} {m}x{k} {type_}", ROWS[name], [_of((m, k), TYPES[type_])]

    def rows_grad(self) -> Made:
        """Gradients of normalisations."""
        r, type_ = self.random, self._type()
        name, m, k = r.choice(["softmax", "layernorm", "rmsnorm"]), r.choice(LARGE), r.choice(LARGE)
        function = lambda x, y: jax.vjp(ROWS[name], x)[1](y)[0]  # noqa: E731
        return f"{name} {m}x{k} {type_}", function, [_of((m, k), TYPES[type_])] * 2

    def reduce(self) -> Made:
        """Sums, means and largest elements along some dimensions."""
        r, type_ = self.random, self._type()
        rank = r.randint(1, 3)
        shape = self._sizes(LARGE[:13] if rank < 3 else LARGE[:8], rank)
        axes = tuple(sorted(r.sample(range(rank), r.randint(1, rank))))
        name = r.choice(["sum", "max", "argmax" if len(axes) == 1 else "mean"])
        functions: dict[str, Callable[[Any], Any]] = {
            "sum": lambda x: x.sum(axes),
            "max": lambda x: x.max(axes),
            "argmax": lambda x: x.argmax(axes[0]),
            "mean": lambda x: (x * x).mean(axes),
        }
        return f"{name} {shape} {axes} {type_}", functions[name], [_of(shape, TYPES[type_])]

    def data(self) -> Made:
        """Ops that move elements."""
        r, type_ = self.random, self._type()
        m, k = r.choice(LARGE), r.choice(LARGE)
        x, heads = _of((m, k), TYPES[type_]), 32 if k % 32 == 0 else 4
        wide = jnp.float32 if type_ == "bfloat16" else jnp.bfloat16
        functions: dict[str, Callable[..., Any]] = {
            "transpose": lambda x: x.T,
            "pad": lambda x: jnp.pad(x, 1),
            "concat": lambda x, y: jnp.concatenate([x, y], 1),
            "slice": lambda x: x[1:, 1:],
            "reverse": lambda x: x[:, ::-1],
            "broadcast": lambda x: jnp.broadcast_to(x[:, None], (m, 4, k)),
            "convert": lambda x: x.astype(wide),
            "split heads": lambda x: x.reshape(m, -1, heads).transpose(1, 0, 2),
            "roll": lambda x: jnp.roll(x, 3, 0),
        }
        name = r.choice(list(functions))
        return f"{name} {m}x{k} {type_}", functions[name], [x, x] if name == "concat" else [x]

    def indexed(self) -> Made:
        """Ops that read or write at positions known only at run time."""
        r, type_ = self.random, self._type()
        m, k, c = r.choice(LARGE), r.choice(LARGE), r.choice([256, 2048, 8192])
        x, i, u = _of((m, k), TYPES[type_]), _of((c,), jnp.int32), _of((c, k), TYPES[type_])
        programs: dict[str, tuple[Callable[..., Any], list[Any]]] = {
            "gather": (lambda x, i: x[i % m], [x, i]),
            "scatter add": (lambda x, i, u: x.at[i % m].add(u), [x, i, u]),
            "scatter set": (lambda x, i, u: x.at[i % m].set(u), [x, i, u]),
            "update": (lambda x, i, u: lax.dynamic_update_slice(x, u[: min(m, 64)], (i[0], 0)), [x, i, u]),
            "embedding grad": (lambda i, u: jnp.zeros((m, k), TYPES[type_]).at[i % m].add(u), [i, u]),
            "dynamic slice": (lambda x, i: lax.dynamic_slice(x, (i[0], 0), (m // 2, k)), [x, i]),
            "one hot": (lambda i: jax.nn.one_hot(i % m, m, dtype=TYPES[type_]), [i]),
        }
        name = r.choice(list(programs))
        return f"{name} {m}x{k} {c} {type_}", *programs[name]

    def ordered(self) -> Made:
        """Sorting, and sums of all before each element."""
        r, type_ = self.random, self._type()
        m, k = r.choice(LARGE[:11]), r.choice(LARGE)
        name, axis = (
            r.choice(["sort", "sort", "argsort", "top_k", "cumsum", "cumsum", "cummax"]),
            r.choice([0, 1]),
        )
        functions: dict[str, Callable[[Any], Any]] = {
            "sort": lambda x: jnp.sort(x, 1),
            "argsort": lambda x: jnp.argsort(x, 1),
            "top_k": lambda x: lax.top_k(x, 8),
            "cumsum": lambda x: jnp.cumsum(x, axis),
            "cummax": lambda x: lax.cummax(x, 1),
        }
        label = f"{name} {m}x{k} {axis if name == 'cumsum' else ''} {type_}"
        return label, functions[name], [_of((m, k), TYPES[type_])]

    def attention(self) -> Made:
        """Attention, and its gradient."""
        r, type_ = self.random, self._type()
        b, s = r.choice([1, 4, 8]), r.choice([128, 512, 1024, 2048])
        h, d = r.choice([4, 16]), r.choice([64, 128])
        causal, gradient = r.random() < 0.5, r.random() < 0.4

        def plain(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
            return attention(q, k, v, causal)

        def back(q: jax.Array, k: jax.Array, v: jax.Array) -> Any:
            backwards: Any = jax.vjp(plain, q, k, v)[1]
            return backwards(q)

        label = f"{'grad ' if gradient else ''}{b},{s},{h},{d} {'causal' if causal else ''} {type_}"
        return label, back if gradient else plain, [_of((b, s, h, d), TYPES[type_])] * 3

    def conv(self) -> Made:
        """Convolutions of images, and their gradients."""
        r, type_ = self.random, self._type()
        p, i, o = r.choice([7, 14, 28, 56]), r.choice([3, 16, 64, 128, 256]), r.choice([16, 64, 128, 256])
        window, stride, gradient = r.choice([1, 3, 5]), r.choice([1, 1, 2]), r.random() < 0.4
        b, layout = r.choice([1, 16, 32]), ("NHWC", "HWIO", "NHWC")

        def plain(x: jax.Array, w: jax.Array) -> jax.Array:
            return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=layout)

        def both(x: jax.Array, w: jax.Array) -> Any:
            return jax.grad(lambda *given: (plain(*given) ** 2).sum().astype(jnp.float32), (0, 1))(x, w)

        label = f"{'grad ' if gradient else ''}{b}x{p}x{p}x{i}->{o} k{window} s{stride} {type_}"
        shapes = [_of((b, p, p, i), TYPES[type_]), _of((window, window, i, o), TYPES[type_])]
        return label, both if gradient else plain, shapes

    def glu(self) -> Made:
        """Gated feed-forward blocks, and their gradients."""
        r, type_ = self.random, self._type()
        m, d, f = r.choice([256, 1024, 4096]), r.choice([512, 1024, 2048]), r.choice([2048, 4096])
        gradient = r.random() < 0.5

        def both(*given: jax.Array) -> Any:
            return jax.grad(lambda *a: gated(*a).astype(jnp.float32).sum(), (0, 2, 3, 4))(*given)

        shapes = [_of(shape, TYPES[type_]) for shape in [(m, d), (d,), (d, f), (d, f), (f, d)]]
        return f"{'grad ' if gradient else ''}{m},{d},{f} {type_}", both if gradient else gated, shapes

    def loop(self) -> Made:
        """Loops of small steps."""
        r, type_ = self.random, self._type()
        steps, m, k = r.choice([10, 100, 300]), r.choice([1, 64, 256, 1024]), r.choice([64, 256, 1024])
        name = r.choice(["tiny", "rnn", "scan"])
        if name == "scan" and m * k * steps > 2**27:
            m = 1
        x, w, rows = (_of(shape, TYPES[type_]) for shape in [(m, k), (k, k), (steps, m, k)])
        programs: dict[str, tuple[Callable[..., Any], list[Any]]] = {
            "tiny": (lambda x: lax.fori_loop(0, steps, lambda i, x: jnp.sin(x) * 0.5, x), [x]),
            "rnn": (lambda x, w: lax.fori_loop(0, steps, lambda i, x: jnp.tanh(x @ w), x), [x, w]),
            "scan": (lambda x, xs: lax.scan(lambda c, y: (c + jnp.tanh(y), c.sum()), x, xs), [x, rows]),
        }
        return f"{name} {steps} {m}x{k} {type_}", *programs[name]

    def linear(self) -> Made:
        """Decompositions of matrices, and Fourier transforms."""
        r = self.random
        m, b = r.choice([64, 256, 512, 1024]), r.choice([1, 4])
        x = _of((b, m, m), jnp.float32)
        programs: dict[str, tuple[Callable[..., Any], list[Any]]] = {
            "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.mT + m * jnp.eye(m)), [x]),
            "triangular solve": (
                lambda x, y: lax.linalg.triangular_solve(x + m * jnp.eye(m), y, left_side=True),
                [x, x],
            ),
            "lu": (lambda x: lax.linalg.lu(x), [x]),
            "fft": (lambda x: jnp.abs(jnp.fft.rfft(x)), [x]),
            "qr": (lambda x: jnp.linalg.qr(x, mode="r"), [x]),
        }
        name = r.choice(list(programs))
        return f"{name} {b}x{m}", *programs[name]

    def drawn(self) -> Made:
        """Random numbers."""
        r, type_ = self.random, self._type()
        size = 2 ** r.randint(14, 25)
        functions: dict[str, Callable[[Any], Any]] = {
            "bits": lambda key: jax.random.bits(key, (size,)),
            "uniform": lambda key: jax.random.uniform(key, (size,), TYPES[type_]),
            "normal": lambda key: jax.random.normal(key, (size,), TYPES[type_]),
            "dropout": lambda key: jnp.where(
                jax.random.bernoulli(key, 0.9, (size,)), jnp.ones(size, TYPES[type_]), 0
            ),
        }
        name = r.choice(list(functions))
        return f"{name} {size} {type_}", functions[name], [_of((2,), jnp.uint32)]

    def pool(self) -> Made:
        """The largest elements of windows, and the gradient."""
        r, type_ = self.random, self._type()
        b, p, c = r.choice([8, 32]), r.choice([28, 56, 112]), r.choice([16, 64, 128])
        gradient = r.random() < 0.3

        def plain(x: jax.Array) -> jax.Array:
            pooled: jax.Array = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
            return pooled

        def back(x: jax.Array) -> Any:
            return jax.grad(lambda x: plain(x).astype(jnp.float32).sum())(x)

        label = f"{'grad ' if gradient else ''}{b}x{p}x{p}x{c} {type_}"
        return label, back if gradient else plain, [_of((b, p, p, c), TYPES[type_])]

    def training(self) -> Made:
        """Updates of parameters, losses and norms."""
        r, type_ = self.random, self._type()
        size = 2 ** r.randint(12, 25)
        name = r.choice(["adam", "sgd", "cross entropy", "norm"])
        if name == "cross entropy":
            m, k = r.choice([256, 1024, 4096]), r.choice([1000, 8192, 32768, 50257])

            def loss(x: jax.Array, y: jax.Array) -> jax.Array:
                return -(jax.nn.log_softmax(x.astype(jnp.float32))[jnp.arange(m), y]).mean()

            shapes = [_of((m, k), TYPES[type_]), _of((m,), jnp.int32)]
            return f"{name} {m}x{k} {type_}", jax.value_and_grad(loss), shapes
        x = _of((size,), TYPES[type_])
        programs: dict[str, tuple[Callable[..., Any], list[Any]]] = {
            "adam": (_adam, [x] * 4),
            "sgd": (lambda p, g: p - 0.01 * g, [x] * 2),
            "norm": (lambda a, b: jnp.sqrt((a * a).sum() + (b * b).sum()), [x] * 2),
        }
        return f"{name} {size} {type_}", *programs[name]


def _adam(p: jax.Array, g: jax.Array, m: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return p - 0.001 * m / (jnp.sqrt(v) + 1e-8), m, v


def _of(shape: Sequence[int], type_: DTypeLike) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tuple(shape), type_)  # type: ignore[no-untyped-call]


def _shapes(specs: Iterable[str], sizes: dict[str, int], type_: str) -> list[jax.ShapeDtypeStruct]:
    return [_of([sizes[dim] for dim in spec], TYPES[type_]) for spec in specs]


def draw(rounds: int, out: Path, platform: str = "cuda") -> None:
    """Writes programs."""
    drawn = programs(rounds, platform=platform)
    rows = [{"kind": kind, "name": name, "text": text} for kind, name, text in drawn]
    write(out, rows)
    print(f"{len(rows)} programs")
