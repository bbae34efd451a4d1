"""Choices to begin with that are far from what propagation decided."""

from __future__ import annotations

import numpy as np

from ...layouts import PieceId, PieceSet
from ..candidates import Candidates
from ..domains import DomainId, Placement
from .sums import Integers


def divided_otherwise(candidates: Candidates) -> list[Integers]:
    """The places of all variables where devices along an axis of the mesh, or along all of them, have the
    same of whatever propagation has divided among them; and those where they have as small parts of
    everything as may be. It can be best that they compute the same, or that a loop carries parts, and that
    is far from all else that is tried."""
    axes = candidates.planner.axes
    pieces: dict[tuple[int, str], set[PieceId]] = {}
    for number, piece in zip(axes.numbers, axes.pieces, strict=True):
        pieces.setdefault((piece.mesh, piece.axis), set()).add(number)
    found = list[Integers]()
    for some in dict.fromkeys(map(frozenset, (*pieces.values(), set().union(*pieces.values())))):
        for place_of in (_without, _with):
            place = {number: place_of(candidates, number, some) for number in set(candidates.domain_of)}
            found.append(np.asarray([place[number] for number in candidates.domain_of], np.int64))
    return found


def _without(candidates: Candidates, number: DomainId, pieces: PieceSet) -> int:
    """The place in a domain that is the home that propagation gave, less some pieces; or that home."""
    places, layouts = candidates.domains[number].places, candidates.layouts
    home = layouts.number(layouts[places[0].home].complete.without(pieces))
    wanted = Placement(home, home)
    return places.index(wanted) if wanted in places else 0


def _with(candidates: Candidates, number: DomainId, pieces: PieceSet) -> int:
    """The place in a domain, without a copy, that is divided along most of some pieces, and of these the
    one along fewest others; or else the home that propagation gave."""
    places, layouts = candidates.domains[number].places, candidates.layouts

    def along(n: int) -> tuple[int, int]:
        split = [piece for dim in layouts[places[n].home].dims for piece in dim]
        some = sum(piece in pieces for piece in split)
        return some, some - len(split)

    homes = [n for n, (home, copy) in enumerate(places) if home == copy]
    return max((n for n in homes if not layouts[places[n].home].partial), key=along, default=0)
