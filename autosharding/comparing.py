"""Two plans compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from .plan import AutoPlan, Placed, Spec


@dataclass(frozen=True)
class Changed:
    """An argument or a result that two plans lay out differently; a spec is None in a plan without it."""

    what: Literal["argument", "result"]
    name: str
    before: Spec | None
    after: Spec | None


@dataclass(frozen=True)
class PlanDiff:
    """Two plans compared.

    It has the ``mesh`` of each, its ``seconds`` and its ``peak``. The different specs are listed by name,
    in the order of the first plan.
    """

    mesh: tuple[str, str]
    seconds: tuple[float, float]
    peak: tuple[int, int]
    changed: tuple[Changed, ...]

    def as_json(self) -> dict[str, Any]:
        """The comparison as a JSON document."""
        return asdict(self)


def compared(one: AutoPlan, other: AutoPlan) -> PlanDiff:
    """Two plans of a model compared, also of different sizes."""
    return PlanDiff(
        (one.mesh, other.mesh),
        (one.seconds, other.seconds),
        (one.peak, other.peak),
        (
            *_changed("argument", one.arguments, other.arguments),
            *_changed("result", one.results, other.results),
        ),
    )


def _changed(
    what: Literal["argument", "result"], one: Sequence[Placed], other: Sequence[Placed]
) -> Iterator[Changed]:
    before, after = ({placed.name: placed.spec for placed in side} for side in (one, other))
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            yield Changed(what, name, before.get(name), after.get(name))
