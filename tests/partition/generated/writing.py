"""What random programs are written with: values, ops in generic form, random shardings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random

import ml_dtypes
import numpy as np
import numpy.typing as npt

Shape = tuple[int, ...]
FLOATS = ("f32", "f32", "f32", "bf16", "f16", "f64")
INTEGERS = ("i32", "i32", "i8", "i64", "ui8", "ui32")
SIZES = (4, 8, 2, 6, 3, 5, 7, 1, 12, 16)
DTYPES: dict[str, npt.DTypeLike] = {
    **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"ui{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    **{f"f{n}": f"float{n}" for n in (16, 32, 64)},
    "i1": "bool",
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}


@dataclass(frozen=True)
class Mesh:
    """A mesh, its devices in some order, and its axes with the sub-axes that shardings are made of."""

    name: str
    axes: tuple[tuple[str, int], ...]
    order: tuple[int, ...] = ()
    pieces: tuple[tuple[str, int], ...] = ()  # as they are written, and their sizes

    def __str__(self) -> str:
        axes = ", ".join(f'"{name}"={size}' for name, size in self.axes)
        order = f", device_ids=[{', '.join(map(str, self.order))}]" if self.order else ""
        return f"sdy.mesh @{self.name} = <[{axes}]{order}>"


def _whole(*sizes: int) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]:
    axes = tuple(zip("abc", sizes, strict=False))
    return axes, tuple((f'"{name}"', size) for name, size in axes)


def mesh(random: Random, name: str = "mesh", count: int = 0) -> Mesh:
    """A mesh of six or eight devices (or ``count``)."""
    sizes = random.choice(
        [s for s in ((2, 4), (8,), (2, 2, 2), (4, 2), (3, 2), (6,), (2, 3)) if not count or prod(s) == count]
    )
    axes, pieces = _whole(*sizes)
    if random.random() < 0.3:
        cut = {8: ((2, 4), (4, 2), (2, 2, 2)), 6: ((2, 3), (3, 2)), 4: ((2, 2),)}
        found = []
        for axis, size in axes:
            before = 1
            for part in random.choice(cut[size]) if size in cut else ():
                found.append((f'"{axis}":({before}){part}', part))
                before *= part
            if size not in cut:
                found.append((f'"{axis}"', size))
        pieces = tuple(found)
    order = list(range(prod(sizes)))
    random.shuffle(order)
    return Mesh(name, axes, tuple(order) if random.random() < 0.25 else (), pieces)


@dataclass(frozen=True)
class Value:
    """An SSA value."""

    name: str
    shape: Shape
    element: str = "f32"

    def __str__(self) -> str:
        return self.name

    @property
    def type(self) -> str:
        """Its type."""
        return tensor(self.shape, self.element)


def tensor(shape: Sequence[int], element: str = "f32") -> str:
    """A tensor type."""
    return f"tensor<{''.join(f'{d}x' for d in shape)}{element}>"


def integers(items: Sequence[int]) -> str:
    """A list of integers as an attribute."""
    return f"array<i64: {', '.join(map(str, items))}>" if items else "array<i64>"


def array(
    random: Random, shape: Shape, element: str, low: int = -4, high: int = 4
) -> npt.NDArray[np.generic]:
    """Small integers, whatever the type, so that sums are exact."""
    numbers = np.random.default_rng(random.randrange(1 << 32))
    if element == "i1":
        return numbers.integers(0, 2, shape).astype(bool)
    if element.startswith("ui"):
        low = max(low, 0)
    array = numbers.integers(low, high + 1, shape).astype(DTYPES[element])
    if element.startswith("complex"):
        array = array + 1j * numbers.integers(low, high + 1, shape)
    return np.asarray(array, DTYPES[element])


@dataclass
class Program:
    """A main function in the making. ``text(True)`` has the random shardings, ``text(False)`` none."""

    random: Random
    meshes: list[Mesh]
    density: float = 0.6  # of shardings
    lines: list[str] = field(default_factory=list)
    shardings: list[str] = field(default_factory=list)
    arguments: list[Value] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    arrays: list[npt.NDArray[np.generic]] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    result_marks: list[int] = field(default_factory=list)
    count: int = 0

    # ---- Choices ----------------------------------------------------------------------------------------

    def flip(self, n: int = 2) -> bool:
        """True once in n times."""
        return self.random.randrange(n) == 0

    def shape(self, least: int = 0, most: int = 3) -> Shape:
        """A random shape."""
        rank = self.random.choice([r for r in (1, 2, 2, 3, 3, 0, 4) if least <= r <= most])
        return tuple(self.random.choice(SIZES) for _ in range(rank))

    def element(self, kinds: str = "fi") -> str:
        """A random type of elements: floats, integers, bools, complex numbers."""
        among = {"f": FLOATS, "i": INTEGERS, "b": ("i1",), "c": ("complex<f32>",)}
        return self.random.choice(among[self.random.choice(kinds)])

    # ---- Shardings --------------------------------------------------------------------------------------

    def sharding(self, shape: Sequence[int]) -> str:
        """A random closed sharding (now and then open); axes need not divide."""
        mesh = self.random.choice(self.meshes)
        pieces = list(mesh.pieces)
        self.random.shuffle(pieces)
        dims: list[list[str]] = [[] for _ in shape]
        sizes = [1] * len(shape)
        for text, size in pieces:
            if not shape or self.flip(4):
                continue
            d = self.random.randrange(len(shape))
            if sizes[d] * size <= shape[d] and not _continues(dims[d], text):
                dims[d].append(text)
                sizes[d] *= size
        opened = self.flip(4)
        texts = ["{" + ", ".join([*dim, *(["?"] if opened else [])]) + "}" for dim in dims]
        return f"@{mesh.name}, [{', '.join(texts)}]"

    def mark(self, types: Sequence[Value], *, boundary: bool = False) -> int:
        """The number of a place where a sharding may stand; 0: none."""
        shardings = [self.sharding(v.shape) for v in types]
        if not types or self.random.random() > self.density:
            return -1
        if boundary:
            text = f"sdy.sharding = #sdy.sharding<{shardings[0]}>"
        else:
            text = f"sdy.sharding = #sdy.sharding_per_value<[{', '.join(f'<{s}>' for s in shardings)}]>"
        self.shardings.append(text)
        return len(self.shardings) - 1

    # ---- Writing ----------------------------------------------------------------------------------------

    def new(self) -> str:
        """A new name."""
        self.count += 1
        return f"%{self.count}"

    def argument(
        self,
        shape: Sequence[int],
        element: str = "f32",
        low: int = -4,
        high: int = 4,
        value: npt.NDArray[np.generic] | None = None,
    ) -> Value:
        """A new argument with small integers in it, or with ``value``."""
        shape = tuple(shape)
        argument = Value(f"%arg{len(self.arguments)}", shape, element)
        self.arguments.append(argument)
        self.marks.append(self.mark([argument], boundary=True))
        self.arrays.append(array(self.random, shape, element, low, high) if value is None else value)
        if shape and self.flip():  # at the boundary only divisible shardings stay
            return self.emit("stablehlo.optimization_barrier", [argument], [argument])[0]
        return argument

    def emit(
        self,
        op: str,
        operands: Sequence[Value],
        results: Sequence[Value | tuple[Sequence[int], str]],
        properties: str = "",
        regions: Sequence[str] = (),
        *,
        bare: bool = False,
    ) -> list[Value]:
        """Writes an op; its results."""
        types = [r if isinstance(r, Value) else Value("", tuple(r[0]), r[1]) for r in results]
        made = [Value(self.new(), t.shape, t.element) for t in types]
        mark = -1 if bare else self.mark(made)
        left = f"{', '.join(map(str, made))} = " if made else ""
        inside = f" <{{{properties}}}>" if properties else ""
        body = f" ({{\n{'}, {'.join(regions)}}})" if regions else ""
        holds = f" @@{mark}@@" if mark >= 0 else ""
        types_ = f"({', '.join(v.type for v in operands)}) -> ({', '.join(v.type for v in made)})"
        self.lines.append(f'{left}"{op}"({", ".join(map(str, operands))}){inside}{body}{holds} : {types_}')
        return made

    def constant(self, value: int | str, shape: Sequence[int] = (), element: str = "i32") -> Value:
        """A constant."""
        literal = str(value)
        if isinstance(value, int):
            if element[0] in "fb":
                literal += ".0"
            elif element == "i1":
                literal = "true" if value else "false"
            elif element.startswith("complex"):
                literal = f"({literal}.0, 0.0)"
        constant = Value("", tuple(shape), element)
        return self.emit("stablehlo.constant", [], [constant], f"value = dense<{literal}> : {constant.type}")[
            0
        ]

    def folded(self, name: str, element: str) -> str:
        """The region of a reduction."""
        a, b, c = self.new(), self.new(), self.new()
        t = tensor((), element)
        return (
            f'^bb0({a}: {t}, {b}: {t}):\n{c} = "stablehlo.{name}"({a}, {b}) : ({t}, {t}) -> {t}\n'
            f'"stablehlo.return"({c}) : ({t}) -> ()\n'
        )

    def nested(self, arguments: Sequence[Value]) -> tuple[list[Value], list[str]]:
        """A block that is being written: its arguments, and the lines before it. See ``end``."""
        nested = [Value(self.new(), a.shape, a.element) for a in arguments]
        outer, self.lines = self.lines, []
        if nested:
            self.lines.append(f"^bb0({', '.join(f'{v}: {v.type}' for v in nested)}):")
        return nested, outer

    def end(self, outer: list[str], values: Sequence[Value], op: str = "stablehlo.return") -> str:
        """The text of the block."""
        names, types = ", ".join(map(str, values)), ", ".join(v.type for v in values)
        self.lines.append(f'"{op}"({names}) : ({types}) -> ()\n')
        text, self.lines = "\n".join(self.lines), outer
        return text

    def give(self, *values: Value) -> None:
        """Values become results of the function."""
        for value in values:
            self.results.append(value)
            self.result_marks.append(self.mark([value], boundary=True))

    def text(self, sharded: bool) -> str:
        """The module."""

        def typed(value: str, mark: int) -> str:
            return f"{value} {{@@{mark}@@}}" if mark >= 0 else value

        takes = ", ".join(f"{a}: {typed(a.type, m)}" for a, m in zip(self.arguments, self.marks, strict=True))
        gives = ", ".join(typed(v.type, m) for v, m in zip(self.results, self.result_marks, strict=True))
        names, types = ", ".join(map(str, self.results)), ", ".join(v.type for v in self.results)
        body = "\n".join(self.lines)
        text = f"func.func @main({takes}) -> ({gives}) {{\n{body}\nreturn {names} : {types}\n}}\n"
        text = "\n".join([*self.functions, text])
        for number, sharding in reversed(list(enumerate(self.shardings))):
            text = text.replace(f"{{@@{number}@@}}", f"{{{sharding}}}" if sharded else "")
            text = text.replace(f"@@{number}@@", f"{{{sharding}}}" if sharded else "")
        return "\n".join([*(str(m) for m in self.meshes if sharded), text])


def _continues(dim: list[str], text: str) -> bool:
    """Whether a sub-axis continues the one before, so that the two would have to be written as one."""
    if not dim or ":" not in text or ":" not in dim[-1]:
        return False
    (one, low), (other, high) = (t.split(":") for t in (dim[-1], text))
    before, size = map(int, low[1:].split(")"))
    return one == other and before * size == int(high[1:].split(")")[0])
