"""Hypothesis: random modules in which many values are unreduced, as text.

    @given(unreduced_modules(kinds=True))
    def test(text: str) -> None: ...

Most modules verify; which of them Shardy takes once shardings are decided, it says itself. ``kinds``: the
text may say maxima and minima, which jaxlib 0.10 cannot read.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

AXES = ("x", "y", "z")
TYPE, ROW = "tensor<8x8xf32>", "tensor<8xf32>"
PARTIAL = 'sdy.sharding = #sdy.sharding_per_value<[<@mesh, [], unreduced={"x"}>]>'
COMBINES = {"": "stablehlo.add", "max": "stablehlo.maximum", "min": "stablehlo.minimum"}


@dataclass(frozen=True)
class Spec:
    """A sharding: the axes of dimensions, those along which it is unreduced, and the reduction."""

    dims: tuple[str, ...]
    unreduced: tuple[str, ...] = ()
    kind: str = ""

    def __str__(self) -> str:
        dims = ", ".join("{" + ", ".join(f'"{a}"' if a in AXES else a for a in d) + "}" for d in self.dims)
        names = ", ".join(f'"{a}"' for a in self.unreduced)
        return f"<@mesh, [{dims}]" + (f", unreduced={self.kind}{{{names}}}" if names else "") + ">"


@dataclass(frozen=True)
class Value:
    """A value by its name, its rank, and the sharding that is said of it."""

    name: str
    rank: int
    spec: Spec | None

    @property
    def type(self) -> str:
        return TYPE if self.rank == 2 else ROW


class _Module:
    def __init__(self, draw: st.DrawFn, kinds: bool) -> None:
        self.draw, self.kinds = draw, kinds
        self.values, self.lines, self.functions, self.count = list[Value](), list[str](), list[str](), 0

    def chance(self, among: int) -> bool:
        return self.draw(st.integers(1, among)) == 1

    def kind(self) -> str:
        return self.draw(st.sampled_from(("", "", "max", "min"))) if self.kinds else ""

    def spec(self, rank: int, like: Spec | None = None) -> Spec:
        """A sharding; mostly unreduced as ``like``."""
        free = list(self.draw(st.permutations(AXES)))
        if like is not None and like.unreduced and not self.chance(4):
            unreduced, kind = like.unreduced, like.kind
        else:
            unreduced, kind = tuple(sorted(free[: self.draw(st.integers(0, 2))])), self.kind()
        free = [a for a in free if a not in unreduced]
        dims = list[str]()
        for _ in range(rank):
            some = free.pop() if free and self.chance(2) else ""
            dims.append(some + self.draw(st.sampled_from(("", "?"))))
        return Spec(tuple(dims), unreduced, kind if unreduced else "")

    def said(self, rank: int, like: Spec | None = None, *, often: int = 2) -> tuple[Spec | None, str]:
        """A sharding of a result, or none, and its attribute."""
        if not self.chance(often):
            return None, ""
        spec = self.spec(rank, like)
        return spec, f" {{sdy.sharding = #sdy.sharding_per_value<[{spec}]>}}"

    def add(self, text: str, rank: int, spec: Spec | None) -> Value:
        """An op with one result."""
        value = Value(f"%{self.count}", rank, spec)
        self.count += 1
        self.lines.append(f"  {value.name} = {text}")
        self.values.append(value)
        return value

    def pick(self, rank: int = 2) -> Value:
        found = [v for v in self.values if v.rank == rank]
        return self.draw(st.sampled_from(found[::-1]))

    # ---- Ops -----------------------------------------------------------------------------------------------

    def elementwise(self) -> None:
        name, other = self.draw(st.sampled_from(("add", "maximum", "tanh", "negate"))), self.pick()
        one = self.pick() if self.chance(2) else other
        operands = f"{one.name}, {other.name}" if name in ("add", "maximum") else one.name
        spec, said = self.said(2, one.spec)
        self.add(f"stablehlo.{name} {operands}{said} : {TYPE}", 2, spec)

    def dot(self) -> None:
        one, other = self.pick(), self.pick()
        spec, said = self.said(2, one.spec)
        text = f"stablehlo.dot_general {one.name}, {other.name}, contracting_dims = [1] x [0]"
        self.add(f"{text}{said} : ({TYPE}, {TYPE}) -> {TYPE}", 2, spec)

    def reduce(self) -> None:
        one, by = self.pick(), self.draw(st.sampled_from((*COMBINES.values(), "stablehlo.multiply")))
        spec, said = self.said(1, one.spec)
        begins = self.draw(st.sampled_from(("%zero", "%zero", "%partial")))
        text = f"stablehlo.reduce({one.name} init: {begins}) applies {by} across dimensions = [1]"
        self.add(f"{text}{said} : ({TYPE}, tensor<f32>) -> {ROW}", 1, spec)

    def reshard(self) -> None:
        one = self.pick()
        spec = self.spec(2, one.spec)
        if one.spec is not None and set(one.spec.unreduced) & set(spec.unreduced):
            spec = Spec(spec.dims, spec.unreduced, one.spec.kind)
        elif one.spec is None or set(spec.unreduced) - set(one.spec.unreduced):
            spec = Spec(spec.dims, spec.unreduced)  # what is brought is a sum
        if one.spec is not None and set(spec.unreduced) - set(one.spec.unreduced) and spec.kind:
            spec = Spec(spec.dims)
        name = self.draw(st.sampled_from(("sharding_constraint", "sharding_constraint", "reshard")))
        self.add(f"sdy.{name} {one.name} {spec} : {TYPE}", 2, spec)

    def barrier(self) -> None:
        one = self.pick()
        direction = self.draw(st.sampled_from(("NONE", "FORWARD", "BACKWARD")))
        self.add(f"sdy.propagation_barrier {one.name} allowed_direction={direction} : {TYPE}", 2, one.spec)

    def all_reduce(self) -> None:
        """A collective of sdy: what verifies is unreduced on the axes, or has no sharding that is said."""
        one = self.pick()
        if one.spec is None or not one.spec.unreduced or any("?" in d for d in one.spec.dims):
            return
        axes = ", ".join(f'"{a}"' for a in one.spec.unreduced)
        spec = Spec(one.spec.dims)
        kind = f"{one.spec.kind} " if one.spec.kind else ""
        self.add(f"sdy.all_reduce {kind}{{{axes}}} {one.name} out_sharding={spec} : {TYPE}", 2, spec)

    def all_reduce_pair(self) -> None:
        """A collective of StableHLO over two tensors."""
        one, other = self.pick(), self.pick()
        specs = [self.spec(2, each.spec) for each in (one, other)]
        by = self.draw(st.sampled_from([*COMBINES.values()])) if self.kinds else COMBINES[""]
        name, said = f"%{self.count}", ""
        if self.chance(2):
            said = f"sdy.sharding = #sdy.sharding_per_value<[{specs[0]}, {specs[1]}]>"
        self.count += 1
        lines = [
            f'{name}:2 = "stablehlo.all_reduce"({one.name}, {other.name})'
            " <{replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>}> ({",
            "^bb0(%p: tensor<f32>, %q: tensor<f32>):",
            f"  %s = {by} %p, %q : tensor<f32>",
            "  stablehlo.return %s : tensor<f32>",
            f"}}) {{{said}}} : ({TYPE}, {TYPE}) -> ({TYPE}, {TYPE})",
        ]
        self.lines.append("  " + "\n    ".join(lines))
        self.values += [Value(f"{name}#{i}", 2, spec if said else None) for i, spec in enumerate(specs)]

    def loop(self) -> None:
        one, other = self.pick(), self.pick()
        spec, said = self.said(2, one.spec)
        _, inner_said = self.said(2, spec or one.spec)
        result = f"%{self.count}"
        said = said.removeprefix(" {").removesuffix("}")
        lines = [
            f"stablehlo.while(%i{self.count} = {one.name}) : {TYPE}",
            f"attributes {{{said}}}" if said else "",
            "cond {",
            "  %t = stablehlo.constant dense<false> : tensor<i1>",
            "  stablehlo.return %t : tensor<i1>",
            "} do {",
            f"  %b = stablehlo.add %i{self.count}, {other.name}{inner_said} : {TYPE}",
            f"  stablehlo.return %b : {TYPE}",
            "}",
        ]
        self.add("\n    ".join(line for line in lines if line), 2, spec)
        assert self.values[-1].name == result

    def call(self) -> None:
        one = self.pick()
        takes, gives = self.spec(2, one.spec), self.spec(2, one.spec)
        spec, said = self.said(2, gives)
        _, body_said = self.said(2, takes)
        name = f"f{len(self.functions)}"
        taken = f" {{sdy.sharding = #sdy.sharding{takes}}}" if self.chance(2) else ""
        given = f" {{sdy.sharding = #sdy.sharding{gives}}}" if self.chance(2) else ""
        self.functions.append(
            f"func.func private @{name}(%a: {TYPE}{taken}) -> ({TYPE}{given}) {{\n"
            f"  %r = stablehlo.tanh %a{body_said} : {TYPE}\n  return %r : {TYPE}\n}}"
        )
        self.add(f"func.call @{name}({one.name}){said} : ({TYPE}) -> {TYPE}", 2, spec)

    def manual(self) -> None:
        """A manual computation. Shardy writes the reductions at its boundary as sums, whichever they are."""
        one = self.pick()
        outer = self.spec(2, one.spec)
        spec = Spec(("", ""), () if outer.kind else outer.unreduced)
        gives = self.spec(2, spec)
        gives = Spec(("", ""), () if gives.kind else gives.unreduced)
        name = "x" if "x" in (*spec.unreduced, *gives.unreduced) or self.chance(2) else "y"
        lines = [
            f"sdy.manual_computation({one.name}) in_shardings=[{spec}] out_shardings=[{gives}] "
            f'manual_axes={{"{name}"}} (%m{self.count}: {TYPE}) {{',
            f"  %c = stablehlo.tanh %m{self.count} : {TYPE}",
            f"  sdy.return %c : {TYPE}",
            f"}} : ({TYPE}) -> {TYPE}",
        ]
        self.add("\n    ".join(lines), 2, gives)

    def write(self) -> str:
        draw = self.draw
        arguments = []
        for i in range(draw(st.integers(1, 3))):
            spec = self.spec(2) if not self.chance(4) else None
            said = f" {{sdy.sharding = #sdy.sharding{spec}}}" if spec else ""
            arguments.append(f"%arg{i}: {TYPE}{said}")
            self.values.append(Value(f"%arg{i}", 2, spec))
        ops = (self.elementwise, self.elementwise, self.dot, self.reduce, self.reshard, self.reshard)
        collectives = (self.all_reduce, self.all_reduce, self.all_reduce_pair)
        rare = (self.barrier, *collectives, self.loop, self.call, self.manual)
        for _ in range(draw(st.integers(1, 5))):
            draw(st.sampled_from((*ops, *rare)))()
        returned = [self.values[-1], *([self.pick()] if self.chance(4) else [])]
        types = list[str]()
        for value in returned:
            spec = self.spec(value.rank, value.spec) if self.chance(3) else None
            types.append(value.type + (f" {{sdy.sharding = #sdy.sharding{spec}}}" if spec else ""))
        names, last = ", ".join(v.name for v in returned), ", ".join(v.type for v in returned)
        return "\n".join(
            [
                'sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>',
                *self.functions,
                f"func.func @main({', '.join(arguments)}) -> ({', '.join(types)}) {{",
                "  %zero = stablehlo.constant dense<0.0> : tensor<f32>",
                f"  %partial = stablehlo.constant {{{PARTIAL}}} dense<0.0> : tensor<f32>",
                *self.lines,
                f"  return {names} : {last}",
                "}",
                "",
            ]
        )


@st.composite
def unreduced_modules(draw: st.DrawFn, *, kinds: bool) -> str:
    """A module whose main function has up to five ops."""
    return _Module(draw, kinds).write()
