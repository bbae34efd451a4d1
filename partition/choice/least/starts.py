"""Starting points that are far from what propagation decided."""

from __future__ import annotations

import numpy as np

from ...layouts import PieceId, PieceSet
from ..candidates import Candidates
from ..domains import DomainId, Placement
from .sums import Integers


def divided_otherwise(candidates: Candidates) -> list[Integers]:
    """Two kinds of starting points. In one, devices along an axis of the mesh, or along all of them, have the
    same data of everything that propagation has split among them. In the other they have the smallest
    possible parts of everything. It can be best that devices repeat work, or that a loop carries parts, and
    both are far from other choices."""
    axes = candidates.planner.axes
    pieces: dict[tuple[int, str], set[PieceId]] = {}
    for number, piece in zip(axes.numbers, axes.pieces, strict=True):
        pieces.setdefault((piece.mesh, piece.axis), set()).add(number)
    starts = list[Integers]()
    for some in dict.fromkeys(map(frozenset, (*pieces.values(), set().union(*pieces.values())))):
        for place_of in (_without, _with):
            place = {number: place_of(candidates, number, some) for number in set(candidates.domain_of)}
            starts.append(np.asarray([place[number] for number in candidates.domain_of], np.int64))
    return starts


def _without(candidates: Candidates, number: DomainId, pieces: PieceSet) -> int:
    """The place in a domain with propagation's home minus some pieces; or that home."""
    places, layouts = candidates.domains[number].places, candidates.layouts
    home = layouts.number(layouts[places[0].home].complete.without(pieces))
    wanted = Placement(home, home)
    return places.index(wanted) if wanted in places else 0


def _with(candidates: Candidates, number: DomainId, pieces: PieceSet) -> int:
    """The place in a domain, without a copy, that is split along the most of some pieces, and among these
    along the fewest others; or else propagation's home."""
    places, layouts = candidates.domains[number].places, candidates.layouts

    def along(n: int) -> tuple[int, int]:
        split = [piece for dim in layouts[places[n].home].dims for piece in dim]
        some = sum(piece in pieces for piece in split)
        return some, some - len(split)

    homes = [n for n, (home, copy) in enumerate(places) if home == copy]
    return max((n for n in homes if not layouts[places[n].home].partial), key=along, default=0)
