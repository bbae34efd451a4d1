"""Hypothesis: random StableHLO modules with partial shardings, as text in MLIR's generic form.

    @given(modules())
    def test(text: str) -> None: ...

Every module parses and verifies. `random_shardings.py` has the meshes and shardings, `random_ops.py` and
`random_flow.py` the ops, `random_blocks.py` what they are written with.
"""

from __future__ import annotations

from hypothesis import strategies as st

from .random_blocks import Block, Function, Module, Value
from .random_flow import fill
from .random_shardings import chance, meshes

DIMENSIONS = (4, 8, 2, 16, 6, 12, 3, 1)  # sizes of tensor dimensions; hypothesis shrinks towards the front


def shapes(module: Module, most: int = 3) -> tuple[int, ...]:
    """A random shape of rank at most `most`."""
    draw = module.draw
    if module.manual:  # what is alike meets more often
        return tuple(draw(st.lists(st.sampled_from((8, 4)), min_size=1, max_size=2)))
    return tuple(
        draw(st.lists(st.sampled_from(DIMENSIONS), min_size=0 if chance(draw, 12) else 1, max_size=most))
    )


def function(module: Module, name: str, *, main: bool, most: int) -> list[str]:
    """The lines of a random function of up to `most` ops; it may call those written before.

    `main`: it is the main function; others are for callers outside too now and then, and then not called.
    """
    draw = module.draw
    count = draw(st.integers(1, 3))
    first = shapes(module)
    arguments = []
    for i in range(count):  # equal and transposed shapes make interesting operands
        like = draw(st.sampled_from((first, first[::-1], None)))
        arguments.append(Value(f"%arg{i}", shapes(module) if like is None else like))
    block = Block(module, list(arguments), 2, [] if main else None)
    fill(block, most)
    produced = [v for v in block.values if v.element == "f32"]
    unused = [v for v in produced if v.name not in module.used]
    returned = [v for v in unused if not chance(draw, 4)] + (block.kept or [])
    if not returned or chance(draw, 3):
        returned.append(draw(st.sampled_from(produced[::-1])))
    block.finish(returned, "func.return")
    visibility = "public" if main or chance(draw, 6) else "private"
    rarity = (2, 4) if main else (5, 8)
    takes = ", ".join(
        f"{a}: {a.type}{module.attribute(a.shape, rarity[0], priorities=main)}" for a in arguments
    )
    gives = ", ".join(f"{v.type}{module.attribute(v.shape, rarity[1], priorities=main)}" for v in returned)
    lines = [f"  func.func {visibility} @{name}({takes}) -> ({gives}) {{", *block.lines, "  }"]
    if visibility == "private":
        text = "\n".join(lines)
        called = [f.text for f in module.functions if f"callee = @{f.name}" in text]
        module.functions.append(Function(name, tuple(arguments), tuple(returned), "\n".join([text, *called])))
    return lines


@st.composite
def modules(draw: st.DrawFn, most: int = 18, *, manual: bool = False) -> str:
    """A module whose main function has up to `most` ops, and sometimes functions that it calls.

    `manual`: most modules have manual computations, and few other ops than shardings flow through.
    """
    module = Module(draw, draw(meshes(2 if manual else 1)), manual)
    lines = ["module {", *(f"  sdy.mesh @{m.name} = {m}" for m in module.meshes)]
    for i in range(draw(st.sampled_from((0, 0, 0, 1, 2)))):
        lines += function(module, f"f{i}", main=False, most=6)
    lines += function(module, "main", main=True, most=most)
    return "\n".join([*lines, "}", ""])
