"""Known strategies as starting points, by ``rules/autosharding/strategies.dl``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..program.mlir.places import components
from ..rulebook.shipped import shipped
from .ends import Ends
from .plan import Spec, spec_of


def strategies(ends: Ends, axes: Sequence[tuple[str, int]]) -> dict[str, dict[int, Spec]]:
    """The specs of all arguments by each strategy that the mesh has axes for, by name. A strategy to which
    the last axis is special has one entry for each axis in that place."""
    by_name: dict[str, dict[int, Spec]] = {}
    for n in range(len(axes)):
        last = axes[-1 - n]
        order = [*(axis for axis in axes if axis != last), last]
        for name, special, specs in _strategies(ends, order):
            if special:
                by_name[f"{name} over {last[0]}"] = specs
            elif not n:
                by_name[name] = specs
    return by_name


def _strategies(ends: Ends, axes: Sequence[tuple[str, int]]) -> Iterator[tuple[str, bool, dict[int, Spec]]]:
    """The strategies on a mesh, and whether the last axis is special to them."""
    tensors = [(n, end) for n, end in enumerate(ends.arguments) if end.shape is not None]
    facts: dict[str, list[tuple[int, ...]]] = {
        "argument": [(n,) for n, _ in tensors],
        "dim": [(n, d, size) for n, end in tensors for d, size in enumerate(end.shape or ())],
        "state": list(_state(ends)),
        "axis": [(n, size) for n, (_, size) in enumerate(axes)],
    }
    answers = shipped("autosharding/strategies").evaluate(facts)
    divided: dict[str, dict[tuple[int, int], list[int]]] = {}
    for name, argument, dim, axis in sorted(answers["divides"]):
        divided.setdefault(name, {}).setdefault((argument, dim), []).append(axis)
    special = {name for (name,) in answers["by_both"]}
    for name, on in divided.items():
        yield name, name in special, {n: _spec(end.shape or (), n, on, axes) for n, end in tensors}


def _spec(
    shape: Sequence[int],
    argument: int,
    on: Mapping[tuple[int, int], Sequence[int]],
    axes: Sequence[tuple[str, int]],
) -> Spec:
    return spec_of(tuple(tuple(axes[n][0] for n in on.get((argument, dim), ())) for dim in range(len(shape))))


def _state(ends: Ends) -> Iterator[tuple[int, int]]:
    """The arguments that are state, and in which of several trees that are alike. Tree 0 are the parameters,
    the shallowest of them; others are moments.

    Trees are alike if all paths below them are, with equal types: ``params``, ``opt_state[0].mu`` and
    ``opt_state[0].nu``. The largest trees count. Side by side in one argument they are parts of a model.
    """
    paths, types = dict[int, tuple[str, ...]](), dict[int, str]()
    for result, n in ends.state.items():
        own, of_result = (components(end.name) for end in (ends.arguments[n], ends.results[result]))
        paths[n], types[n] = own if own[1:] else of_result[1:], ends.arguments[n].type
    below = dict[tuple[str, ...], list[tuple[tuple[str, ...], str]]]()
    for n, path in sorted(paths.items()):
        for depth in range(1, len(path)):
            below.setdefault(path[:depth], []).append((path[depth:], types[n]))
    alike = dict[object, list[tuple[str, ...]]]()
    for root, inside in below.items():
        alike.setdefault(tuple(inside), []).append(root)
    for n, path in sorted(paths.items()):
        above = (alike[tuple(below[path[:depth]])] for depth in range(1, len(path)))
        roots = sorted(next((each for each in above if len(each) > 1), [path]), key=len)
        apart = len(roots[-1]) > len(roots[0]) or not roots[0][:-1] or len({root[:-1] for root in roots}) > 1
        yield n, next(t for t, root in enumerate(roots) if path[: len(root)] == root) if apart else 0
