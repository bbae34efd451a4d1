"""Explanations checked by running again with other annotations.

The specs of ``shard_map``s are part of the program, and completion came before: they are never dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from ...program.ids import Cell
from ...program.shardings import Sharding
from ...propagation.fixpoint import Fixpoint, propagate
from ...runs.result import Result
from ...runs.running import run_with
from ..answers.why import Explanation


@dataclass(frozen=True)
class Replay:
    """The outcome of running again with fewer annotations.

    ``holds``: with the annotations of the explanation alone the axis is derived again. Otherwise ``also`` are
    the cells of the annotations that are needed too, because of the order in which tensors got their axes.
    """

    holds: bool
    also: tuple[Cell, ...] = ()


def replay(result: Result, explanation: Explanation) -> Replay:
    """Keeps only the annotations that an explanation rests on and runs again."""
    kept = [annotation.cell for annotation in explanation.needs]
    if _derived(result, kept, explanation):
        return Replay(True)
    others = [a.cell for a in result.record.annotations() if a.cell not in kept]
    also: list[Cell] = []
    while others:
        # The shortest prefix of the others that suffices together with the needed ones. Its last one is
        # needed.
        low, high = 0, len(others)
        while low < high:
            middle = (low + high) // 2
            if _derived(result, [*kept, *also, *others[:middle]], explanation):
                high = middle
            else:
                low = middle + 1
        if low == 0:
            break
        also.append(others[low - 1])
        others = others[: low - 1]
    return Replay(False, tuple(sorted(also)))


def without(result: Result, dropped: Iterable[Cell]) -> Result:
    """The run without the annotations of cells."""
    return run_with(result.source, result.options, dropped=frozenset(dropped))


def again(result: Result, cells: Collection[Cell]) -> Fixpoint:
    """The run with the annotations of ``cells`` only."""
    program = replace(result.program, initial=_kept(result, cells))
    return propagate(program, result.book, result.fixpoint.strategy, last=result.fixpoint.last)


def _kept(result: Result, cells: Collection[Cell]) -> dict[int, Sharding]:
    kept = {
        a.cell for a in result.record.given_shardings() if a.spec or a.by == "completion" or a.cell in cells
    }
    return {cell: sharding for cell, sharding in result.program.initial.items() if cell in kept}


def _derived(result: Result, cells: Sequence[Cell], explanation: Explanation) -> bool:
    fixpoint = again(result, set(cells))
    cell = int(result.program.cells[explanation.place])
    held = fixpoint.agenda.facts(int(fixpoint.outcome.contents[cell])).get("sharded", [])
    return set(explanation.atoms) <= {x for d, _, x in held if d == explanation.site.dim}
