"""Final contents as attributes; every distinct one is built once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..importers.graph.graph import Instance
from ..program.meshes import Mesh
from ..program.shardings import Facts, Sharding, Shardings

Shape = tuple[int, ...]


class FinalShardings:
    """The shardings that the places of a graph hold at the end, and their attributes.

    ``contents`` is the content of every place, and ``facts`` returns the facts of a content. ``fit`` adapts a
    sharding to the boundary of the module (``rules/propagation/boundary.dl``). ``siblings``, ``takes`` and
    ``crosses`` ask the rules (see ``RuleBook``).
    """

    def __init__(
        self,
        shardings: Shardings,
        contents: npt.NDArray[np.int32],
        facts: Callable[[int], Facts],
        fit: Callable[[Facts, Shape, bool], Facts],
        siblings: Callable[[str, Sequence[int | None], Sequence[Mesh]], tuple[dict[int, int], set[int]]],
        takes: Callable[..., bool],
        crosses: Callable[..., tuple[bool, bool]],
        unchanged: Mapping[int, Sharding],
        returned: Mapping[int, int],
        *,
        closed: bool,
    ) -> None:
        self.shardings, self.contents, self.closed = shardings, contents, closed
        self.unchanged = unchanged  # place -> a sharding that still has its priorities
        self.returned = returned  # place of a result of the main function -> that of the returned value
        self._facts, self._fit, self._siblings = facts, fit, siblings
        self._takes, self._crosses = takes, crosses
        self._read: dict[tuple[int, int], Sharding | None] = {}
        self._fitted: dict[tuple[Sharding | None, Shape, bool], Sharding | None] = {}
        self._attributes: dict[Any, ir.Attribute] = {}
        self._decided: dict[tuple[str, tuple[int | None, ...]], tuple[dict[int, int], set[int]]] = {}

    def sharding(self, place: int, rank: int) -> Sharding | None:
        """The sharding of a place whose tensor has this rank; None if it has none. A result of the main
        function may take the sharding of the returned value."""
        if place in self.unchanged:
            return self.unchanged[place]
        sharding = self.of(int(self.contents[place]), rank)
        if sharding is None and place in self.returned:
            return self.result(None, self.sharding(self.returned[place], rank), entry=True)
        return sharding

    def all(self, places: npt.NDArray[np.int32], ranks: Sequence[int]) -> list[Sharding | None]:
        """The shardings of places whose tensors have these ranks."""
        if self.unchanged:
            return [self.sharding(place, rank) for place, rank in zip(places.tolist(), ranks, strict=True)]
        contents = self.contents[places].tolist()
        return [self.of(content, rank) for content, rank in zip(contents, ranks, strict=True)]

    def held(self, instance: Instance, values: Sequence[int], ranks: Sequence[int]) -> list[Sharding | None]:
        """The shardings of values of a function, which have these ranks."""
        return self.all(instance.place + instance.layout.place[list(values)], ranks)

    def of(self, content: int, rank: int) -> Sharding | None:
        """The sharding that a content stands for."""
        key = (content, rank)
        if key not in self._read:
            self._read[key] = self.shardings.sharding(self._facts(content), rank)
        return self._read[key]

    def result(self, sharding: Sharding | None, returned: Sharding | None, **holds: bool) -> Sharding | None:
        """The sharding of a function's result, from its own and the returned value's. ``RuleBook.takes``
        documents ``holds``."""
        if sharding is not None or returned is None:
            return sharding
        single_device = self.shardings.meshes.meshes[returned.mesh].maximal
        return returned if self._takes(single_device=single_device, **holds) else None

    def crossed(self, given: Sharding, wanted: Sharding | None) -> tuple[bool, bool]:
        """Whether a result is resharded after a call, because the function returns it with another sharding
        than the call wants; and whether the call keeps the sharding that it wants."""
        return self._crosses(
            axes_differ=_axes(given) != _axes(wanted),
            unreduced_differ=_unreduced(given) != _unreduced(wanted),
        )

    def fitted(self, sharding: Sharding | None, shape: Shape, *, entry: bool) -> Sharding | None:
        """The largest part of ``sharding`` that a function argument or result of this shape may have.

        ``entry``: it is an argument or result of the main function, which may not have sub-axes in open
        dimensions.
        """
        key = (sharding, shape, entry)
        if key not in self._fitted:
            self._fitted[key] = self._fitting(sharding, shape, entry)
        return self._fitted[key]

    def _fitting(self, sharding: Sharding | None, shape: Shape, entry: bool) -> Sharding | None:
        if sharding is None or not sharding.dimensions:
            return sharding
        facts = self.shardings.facts(sharding)
        facts.update(self._fit(facts, shape, entry))
        fitted = self.shardings.sharding(facts, len(shape))
        if fitted is None or all(d.priority is None for d in sharding.dimensions):
            return fitted
        kept = [
            replace(new, priority=old.priority if size % prod(axis.size for axis in old.axes) == 0 else None)
            for new, old, size in zip(fitted.dimensions, sharding.dimensions, shape, strict=True)
        ]
        return replace(fitted, dimensions=tuple(kept))

    def attribute(self, sharding: Sharding) -> ir.Attribute:
        """``#sdy.sharding<...>``, closed if the module is to be closed."""
        return self.shardings.attribute(sharding, closed=self.closed)

    def per_value(self, shardings: Sequence[Sharding | None], ranks: Sequence[int]) -> ir.Attribute | None:
        """``#sdy.sharding_per_value<[...]>`` for the results of an op; None if none of them has a sharding.

        Results without a sharding get a fully open one, see ``filled``.
        """
        key = (tuple(shardings), tuple(ranks))
        if key not in self._attributes:
            filled = self.filled(shardings, ranks)
            if filled is None:
                return None
            self._attributes[key] = sdy.TensorShardingPerValueAttr.get([self.attribute(s) for s in filled])
        return self._attributes[key]

    def filled(
        self, shardings: Sequence[Sharding | None], ranks: Sequence[int], when: str = "export"
    ) -> list[Sharding] | None:
        """``shardings`` of siblings, with gaps filled from other siblings; None if all are gaps.

        ``rules/propagation/siblings.dl`` decides, and says what ``when`` can be.
        """
        held = tuple([None if s is None else s.mesh for s in shardings])
        if (when, held) not in self._decided:
            self._decided[when, held] = self._siblings(when, held, self.shardings.meshes.meshes)
        opened, lost = self._decided[when, held]
        all_shardings = [
            Sharding.open(opened[i], rank) if i in opened else None if i in lost else sharding
            for i, (sharding, rank) in enumerate(zip(shardings, ranks, strict=True))
        ]
        filled = [sharding for sharding in all_shardings if sharding is not None]
        return filled if filled and len(filled) == len(all_shardings) else None


def _axes(sharding: Sharding | None) -> Any:
    """A key that is equal for two shardings with the same axes in their dimensions."""
    axes = () if sharding is None else tuple(d.axes for d in sharding.dimensions)
    return (sharding and sharding.mesh, axes) if any(axes) else None


def _unreduced(sharding: Sharding | None) -> Any:
    return (sharding.mesh, sharding.unreduced) if sharding is not None and sharding.unreduced else None
