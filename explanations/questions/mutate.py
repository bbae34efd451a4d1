"""What sharding options of ops change in a partitioned program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ...cost.formulas import formulas
from ...program.carried import has_unknown_sizes
from ...runs.choice import ProgramChoice
from ...runs.options import machine_of_costs
from ..answers.mutated import Metrics, Mutated, MutatedFormulas
from ..partitioned import Partitioned, Programs
from .pins import moves_of, only


def mutate(
    before: Programs, after: Programs, options: Sequence[str], choice: ProgramChoice
) -> Mutated | MutatedFormulas:
    """The effect of the options that the run of ``after`` has, and the run of ``before`` has not. Where sizes
    of the grid are not known, formulas in these sizes."""
    if has_unknown_sizes(before.result.module):
        return MutatedFormulas(tuple(options), formulas(before.result), formulas(after.result))
    first, second = before.asked(choice), after.asked(choice)
    gone, new = moves_of(first), moves_of(second)
    return Mutated(
        choice, tuple(options), _metrics(first), _metrics(second), only(gone, new), only(new, gone)
    )


def _metrics(program: Partitioned) -> Metrics:
    received = defaultdict[str, int](int)
    for collective in program.collectives:  # in a ring, a device receives as much as it sends
        received[collective.kind] += collective.total
    cost = program.cost(machine_of_costs(program.choice.topology), step=False)
    return Metrics(dict(sorted(received.items())), cost.flops, cost.redundant, cost.peak)
