"""Hypothesis: what random modules are written with: values, blocks, and the ops in them in generic form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from hypothesis import strategies as st

from .random_shardings import Mesh, chance, sharding

T = TypeVar("T")


def tensor(shape: Sequence[int], element: str = "f32") -> str:
    """A tensor type."""
    return f"tensor<{''.join(f'{d}x' for d in shape)}{element}>"


@dataclass(frozen=True)
class Value:
    """An SSA value: its name, and its type in two parts."""

    name: str
    shape: tuple[int, ...]
    element: str = "f32"
    constant: bool = False  # computed from constants alone

    def __str__(self) -> str:
        return self.name

    @property
    def type(self) -> str:
        """The type as MLIR writes it."""
        return tensor(self.shape, self.element)


@dataclass(frozen=True)
class Function:
    """A function that has been written and may be called."""

    name: str
    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    text: str  # with the functions that it calls


@dataclass(frozen=True)
class Manual:
    """The manual computations around a block: the mesh that they are over, and the axes that are manual."""

    mesh: Mesh
    axes: frozenset[str]
    number: int  # from 1

    def admits(self, function: Function) -> bool:
        """Whether the function may be called inside: it names no manual axis, no other mesh and no group."""
        words = ("@other", "sharding_group", *(f'"{axis}"' for axis in self.axes))
        return not any(word in function.text for word in words)


@dataclass
class Module:
    """The state that the blocks of one module share."""

    draw: st.DrawFn
    meshes: Sequence[Mesh]
    manual: bool = False  # it is about manual computations
    functions: list[Function] = field(default_factory=list)
    # The shape of a sharding group's members; groups do not cross the boundary of a manual computation.
    groups: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    names: Iterator[int] = field(default_factory=count)
    bodies: Iterator[int] = field(default_factory=lambda: count(1))
    used: set[str] = field(default_factory=set)  # names of the values that are operands
    ungrouped: set[str] = field(default_factory=set)  # ... of those that join no sharding group

    def sharding(self, shape: Sequence[int], *, priorities: bool, inside: Manual | None = None) -> str:
        """A random `<@mesh, ...>`, as it may be inside of manual computations."""
        meshes, bound = ([inside.mesh], inside.axes) if inside else (self.meshes, frozenset())
        return f"<{sharding(self.draw, meshes, len(shape), priorities=priorities, bound=bound)}>"

    def attribute(self, shape: Sequence[int], rarity: int, *, priorities: bool) -> str:
        """The attributes of a function argument or result: a sharding, once in `rarity` times."""
        if not chance(self.draw, rarity):
            return ""
        return f" {{sdy.sharding = #sdy.sharding{self.sharding(shape, priorities=priorities)}}}"


@dataclass
class Block:
    """A block under construction: the lines written so far, and the values that may be used.

    Only values that the main function returns have priorities, listed in `kept`: an op with priorities
    that has no use is still read by Shardy after it has been removed. Copies of constants may be such ops.
    """

    module: Module
    values: list[Value]
    depth: int
    kept: list[Value] | None = None  # None: no priorities in this block
    manual: Manual | None = None
    lines: list[str] = field(default_factory=list)
    constants: list[Value] = field(default_factory=list)

    @property
    def draw(self) -> st.DrawFn:
        """Hypothesis' source of choices."""
        return self.module.draw

    def choose(self, items: Sequence[T]) -> T:
        """One of the items."""
        return self.draw(st.sampled_from(items))

    def flip(self, n: int = 2) -> bool:
        """True once in `n` times."""
        return chance(self.draw, n)

    def number(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return self.draw(st.integers(low, high))

    def order(self, items: Sequence[int]) -> list[int]:
        """The items in random order."""
        return list(self.draw(st.permutations(items)))

    def subset(self, items: Sequence[int], least: int = 0) -> list[int]:
        """Some of the items, in order."""
        if not items:
            return []
        chosen = self.draw(st.sets(st.sampled_from(items), min_size=min(least, len(items))))
        return sorted(chosen)

    def pick(
        self, shape: Sequence[int] | None = None, *, element: str = "f32", rank: int | None = None
    ) -> Value | None:
        """A value in scope with this type (`rank`: at least), late ones first; None where there is none."""
        fitting = [
            v
            for v in reversed(self.values)
            if v.element == element
            and (shape is None or v.shape == tuple(shape))
            and (rank is None or len(v.shape) >= rank)
        ]
        if not fitting:
            return None
        return self.draw(st.sampled_from(fitting if self.flip() else fitting[:3]))

    def name(self) -> str:
        """A new name for a value."""
        return f"%{next(self.module.names)}"

    def sharding(self, value: Value) -> str:
        """A random sharding for a value that is new in this block."""
        priorities = self.kept is not None and not value.constant
        text = self.module.sharding(value.shape, priorities=priorities, inside=self.manual)
        if self.kept is not None and re.search(r"\}p\d", text):
            self.kept.append(value)
        return text

    def write(self, line: str) -> None:
        """Appends a line, indented."""
        self.lines.append("  " * self.depth + line)

    def emit(
        self,
        op: str,
        operands: Sequence[Value],
        results: Sequence[tuple[Sequence[int], str]],
        properties: str = "",
        *,
        attributes: Sequence[str] = (),
        regions: Sequence[Block] = (),
        bare: bool = False,
    ) -> list[Value]:
        """Writes an op in generic form, now and then with shardings on its results. Returns its results.

        `bare`: without shardings.
        """
        self.module.used.update(v.name for v in operands)
        constant = all(v.constant for v in operands)
        values = [Value(self.name(), tuple(shape), element, constant) for shape, element in results]
        texts = list(attributes)
        if values and not bare and self.flip(6):
            shardings = ", ".join(self.sharding(v) for v in values)
            texts.append(f"sdy.sharding = #sdy.sharding_per_value<[{shardings}]>")
        left = f"{', '.join(map(str, values))} = " if values else ""
        inside = f" <{{{properties}}}>" if properties else ""
        dictionary = f" {{{', '.join(texts)}}}" if texts else ""
        types = f"({', '.join(v.type for v in operands)}) -> ({', '.join(v.type for v in values)})"
        head = f'{left}"{op}"({", ".join(map(str, operands))}){inside}'
        if regions:
            self.write(head + " ({")
            for i, region in enumerate(regions):
                self.lines += [*(["  " * self.depth + "}, {"] if i else []), *region.lines]
            self.write(f"}}){dictionary} : {types}")
        else:
            self.write(f"{head}{dictionary} : {types}")
        self.values += values
        return values

    def constant(self, shape: Sequence[int] = (), element: str = "f32", value: int = 0) -> Value:
        """A splat constant, sometimes one that is there already."""
        equal = [v for v in self.constants if (v.shape, v.element) == (tuple(shape), element)]
        if equal and self.flip():
            return self.draw(st.sampled_from(equal))
        literal = f"dense<{value}{'.0' if element == 'f32' else ''}> : {tensor(shape, element)}"
        constant = self.emit("stablehlo.constant", [], [(shape, element)], f"value = {literal}")[0]
        self.constants.append(constant)
        return constant

    def region(self, arguments: Sequence[tuple[Sequence[int], str]] = (), *, closed: bool = False) -> Block:
        """A block for a region of the next op; in a `closed` one the values of this block are not used."""
        made = [Value(self.name(), tuple(shape), element) for shape, element in arguments]
        inner = Block(self.module, made, self.depth + 1, manual=self.manual)
        if not closed:
            inner.values, inner.constants = self.values + made, list(self.constants)
        if made:
            inner.write(f"^bb0({', '.join(f'{v}: {v.type}' for v in made)}):")
        return inner

    def finish(self, values: Sequence[Value], op: str = "stablehlo.return") -> Block:
        """Ends the block with a return."""
        self.module.used.update(v.name for v in values)
        self.write(f'"{op}"({", ".join(map(str, values))}) : ({", ".join(v.type for v in values)}) -> ()')
        return self
