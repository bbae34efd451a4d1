"""A plan applied to another size of its model: arguments are matched by name, and nothing is searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from ..errors import ShardlogError, closest
from .ends import End
from .options import METHODS, AutoOptions
from .plan import AutoPlan, Placed, Spec, axes_of, indices_of, pattern_of, spec_of
from .searching import Costed, Search

_WHERE = "--plan"
_NAMES = 3  # of arguments in a message


def applied(
    source: Any, plan: AutoPlan, options: AutoOptions, progress: Callable[[str, float], None] | None = None
) -> AutoPlan:
    """A plan for another size of its model.

    Each argument and result has the plan's spec for its name, or else for the nearest name that differs only
    in indices. Kept shardings stay. ``notes`` say what is replicated: dimensions that their axes do not
    divide, and arguments that the plan does not have. The mesh is the plan's, unless ``options`` have
    another. ``sum`` and ``bound`` are None: nothing is searched.

    Raises ShardlogError for a program of another model, for axes that the mesh does not have, and if the
    program needs more memory than ``options`` allow. Also for ``options`` with a method of search.
    """
    if options.method != METHODS[0]:
        message = f"a search, {options.method}, and a plan to apply, with which nothing is searched"
        raise ShardlogError(message, where="--method", hint="leave one of them out")
    where = "" if options.mesh is not None else f"{_WHERE}, its mesh {plan.mesh}"
    tell = progress or (lambda stage, done: None)
    search = Search(source, options.mesh or plan.mesh, options, tell, where)
    axes, notes = dict(search.axes), list[str]()
    missing = next((name for name in _axes(plan) if name not in axes), None)
    if missing is not None:
        hint = f"{closest(missing, axes)}; a plan is for axes of the same names"
        raise ShardlogError(f"the mesh has no axis {missing}, which the plan uses", where=_WHERE, hint=hint)
    arguments = _specs(plan.arguments, search.ends.arguments, axes, notes)
    results = _specs(plan.results, search.ends.results, axes, [])
    if not arguments and search.ends.arguments:
        names = ", ".join(placed.name for placed in plan.arguments[:_NAMES]) or "none"
        message = f"this program has no argument of the plan, which has {names}"
        raise ShardlogError(message, where=_WHERE, hint="apply a plan to another size of its model")
    candidate = search.candidate_of("applied", arguments, results)
    return search.unsearched(Costed(candidate, search.cost(candidate)), notes)


def _axes(plan: AutoPlan) -> list[str]:
    """The axes that a plan uses."""
    placed = (*plan.arguments, *plan.results)
    return [name for each in placed for names in axes_of(each.spec) for name in names]


def _specs(
    placed: Sequence[Placed], ends: Sequence[End], axes: Mapping[str, int], notes: list[str]
) -> dict[int, Spec]:
    """The specs of those ends that a plan has, by number."""
    by_name = {each.name: each for each in placed}
    by_pattern: dict[str, list[tuple[list[int], Placed]]] = {}
    for each in placed:
        by_pattern.setdefault(pattern_of(each.name), []).append((indices_of(each.name), each))
    specs = dict[int, Spec]()
    for n, end in enumerate(ends):
        alike = by_pattern.get(pattern_of(end.name), ())
        near = min(alike, key=lambda pair: _distance(pair[0], indices_of(end.name)), default=None)
        given = by_name.get(end.name) or (near and near[1])
        if end.shape is None:
            continue
        if given is None:
            notes.append(f"{end.name} is replicated: the plan has nothing of this name")
        elif len(given.spec) != len(end.shape):
            message = f"{end.name} has {len(end.shape)} dimensions, and {len(given.spec)} in the plan"
            raise ShardlogError(message, where=_WHERE, hint="apply a plan to another size of its model")
        else:
            specs[n] = _dividing(given.spec, end, axes, notes)
    return specs


def _distance(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """How far indices are apart, the outermost first."""
    return [abs(n - m) for n, m in zip(one, other, strict=True)]


def _dividing(spec: Spec, end: End, axes: Mapping[str, int], notes: list[str]) -> Spec:
    """The spec without axes that do not divide a dimension."""
    kept = list[tuple[str, ...]]()
    for dim, (names, size) in enumerate(zip(axes_of(spec), end.shape or (), strict=True)):
        divided = names
        while size % prod(axes[name] for name in divided):
            divided = divided[:-1]
        if divided != names:
            divided_text = f"on {'+'.join(divided)} only" if divided else "whole"
            parts = prod(axes[name] for name in names)
            notes.append(
                f"{end.name} is {divided_text} in dimension {dim}: {parts} parts do not divide {size}"
            )
        kept.append(divided)
    return spec_of(tuple(kept))
