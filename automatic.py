"""``shardlog.auto``: shardings for a function that has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .autosharding.applying import applied
from .autosharding.automatic import costed_known, pareto, plan, session_of
from .autosharding.options import AutoOptions
from .autosharding.pictures import plan_picture
from .autosharding.plan import AutoPlan
from .autosharding.texts import plan_text
from .errors import ShardlogError
from .explanations.partitioned import Partitioned
from .importers.asked import mesh_text
from .importers.sources.jax import lowered
from .importers.sources.views import view_of
from .jitted import jit
from .outputs import write
from .session import Session

if TYPE_CHECKING:
    from jax.sharding import PartitionSpec

_OPTIONS = ("mesh", "devices", "axes", "topology", "memory", "keep", "tie", "compare", "method")


class Auto:
    """The shardings found for a program, and their cost; ``shardlog.auto`` returns it.

    ``plan`` is the ``AutoPlan``: a mesh, specs, seconds and bytes.
    """

    def __init__(self, function: object, program: object, options: AutoOptions, plan: AutoPlan) -> None:
        self._function, self._program, self._options = function, program, options
        self.plan = plan

    @property
    def seconds(self) -> float:
        """The time of a step by ``docs/cost.md``."""
        return self.plan.seconds

    @property
    def peak(self) -> int:
        """The bytes of a device at the peak."""
        return self.plan.peak

    @property
    def bound(self) -> float | None:
        """A lower bound of the sum that the search minimised, in seconds; see ``plan.sum``.

        None for a plan that was applied.
        """
        return self.plan.bound

    @cached_property
    def specs(self) -> Any:
        """The ``PartitionSpec`` of each argument, in the shape of the arguments: what ``in_shardings`` takes.

        Of a module without a function they are a list.
        """
        return self._in_shape("arguments", self.plan.arguments)

    @cached_property
    def result_specs(self) -> Any:
        """The ``PartitionSpec`` of each result, in the shape of the results."""
        return self._in_shape("results", self.plan.results)

    def _in_shape(self, which: str, placed: Sequence[Any]) -> Any:
        from jax import tree
        from jax.sharding import PartitionSpec

        spec_of: Any = PartitionSpec
        specs: list[PartitionSpec] = [spec_of(*each.spec) for each in placed]
        interface = view_of(self._program, "lowered")[0].interface
        shape = getattr(interface, which)
        if shape is None:
            return specs
        if which == "arguments":
            count, first = shape.num_leaves, len(interface.constants)
            given = dict(zip(interface.kept, specs[first:], strict=False))
            args, keywords = tree.unflatten(shape, [given.get(n, spec_of()) for n in range(count)])
            return (args, keywords) if keywords else args
        return tree.unflatten(shape, specs[: shape.num_leaves])

    @cached_property
    def session(self) -> Session:
        """The run with these shardings, which answers questions."""
        return session_of(self._program, self.plan)

    @cached_property
    def program(self) -> Partitioned:
        """The program that each device runs."""
        return self.session.partition(topology=self.plan.topology, memory=self.plan.memory)

    def jit(self, **options: object) -> Any:
        """The function, compiled with the costed program: ``shardlog.jit`` with these shardings.

        ``options`` are options of ``shardlog.jit``. A function of ``jax.jit`` keeps its static and donated
        arguments, and its other options. Raises ShardlogError if only a module was given.
        """
        if not callable(self._function):
            message, hint = "there is no function to compile", "give shardlog.auto a function"
            raise ShardlogError(message, where="auto", hint=hint)
        from .executing.dispatch import unjitted

        function, own = unjitted(self._function)
        return jit(
            function,
            mesh=self.plan.mesh,
            annotate=self.plan.annotations,
            partitioner="shardlog",
            topology=self.plan.topology,
            memory=self.plan.memory,
            **{**own, **options},
        )

    def pareto(self) -> tuple[AutoPlan, ...]:
        """The plans on this mesh that are not both slower and larger than another, the fastest first."""
        return pareto(self._program, self._options.on(self.plan.mesh))

    def plot(self, path: str | Path) -> None:
        """Draws the time against the memory of all plans that were costed, and of ``pareto``, as an SVG file.

        Raises ShardlogError where the file cannot be written.
        """
        costed = costed_known(self._program, self.plan, self._options)
        write(path, plan_picture(costed, self.pareto()).encode())

    def __repr__(self) -> str:
        return plan_text(self.plan)


def auto(
    source: Any, *args: Any, progress: Callable[[str, float], None] | None = None, **keywords: Any
) -> Auto:
    """Finds shardings for the arguments and results of a program, and for all between, by cost on a machine.

    ``source`` and ``args`` are as for ``shardlog.run``: a function with its arguments, or a module. Keywords
    are ``mesh``, or ``devices`` and at most how many ``axes`` their mesh has; ``topology``, the machine;
    ``memory``, the most that a device may use; ``keep``, shardings that stay, as in 'batch[0]=data'; ``tie``,
    which results are state; ``compare``, whether known strategies are costed as well; ``method``, "choose" or
    "mutate" (``docs/auto.md``). With ``plan``, an ``AutoPlan`` or its file, of the same model in another
    size, that plan is applied and nothing is searched. Other keywords are the function's.

    Returns an ``Auto``. Raises ShardlogError for bad input, and if no plan within the memory was found.
    """
    auto_options = {name: keywords.pop(name) for name in _OPTIONS if name in keywords}
    known_plan = keywords.pop("plan", None)
    if known_plan is not None:
        known_plan = known_plan if isinstance(known_plan, AutoPlan) else AutoPlan.read(known_plan)
        auto_options.setdefault("topology", known_plan.topology)
    if auto_options.get("mesh") is not None:
        auto_options["mesh"] = mesh_text(auto_options["mesh"])
    options = AutoOptions.of(**auto_options)
    program = lowered(source, args, keywords)
    best = (
        plan(program, options, progress)
        if known_plan is None
        else applied(program, known_plan, options, progress)
    )
    return Auto(source, program, options, best)
