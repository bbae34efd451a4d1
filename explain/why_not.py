"""Why a dimension is not sharded on an axis: where the axis stopped on its way, and what stopped it.

The way is that of factors: from a dimension to the dimensions that share a factor with it in an op, and
on. Where one has the axis and the next has not, ``rules/propagation/blocked.dl`` says why, for a turn at
the end of the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

from ..engine.proof import Proof
from ..errors import ShardlogError
from .explanation import Reason, Site, Stop, WhyNot, rule_place
from .record import Run, Value, record
from .why import Explainer

_MOST_STOPS = 20
_CLOSER = ("barred", "declines", "stops")  # whose sentences say most, best first


def why_not(run: Run, name: str, dim: int, axis: str) -> list[WhyNot]:
    """Why dimension ``dim`` of the values called ``name`` is not sharded on a mesh axis.

    Raises ShardlogError for values, dimensions and axes that do not exist, and where it is sharded on the
    axis.
    """
    explainer = Explainer(run)
    search = Search(explainer, axis)
    found = []
    for value in explainer.values.find(name):
        explainer.check(value, dim, axis)
        found.append(search.explain(value, dim))
    return found


def after_removal(run: Run, explanation: WhyNot) -> tuple[str, str] | None:
    """What happens without the annotation that the first culprit comes from; None where none is named.

    Returns the annotated value and what is so without it: the axis is there, or what is in its way next.
    Raises ShardlogError where nothing changes.
    """
    reasons = [*explanation.here, *(reason for stop in explanation.stops for reason in stop.reasons)]
    cell = next((reason.cell for reason in reasons if reason.cell >= 0), -1)
    if cell < 0 or not record(run).annotation(cell).text:
        return None
    from .replay import without

    site, axis = explanation.site, explanation.axis
    culprit = record(run).annotation(cell).value
    try:
        (found,) = why_not(without(record(run).result, [cell]), site.value, site.dim, axis)
    except ShardlogError:
        return culprit, f'{site.value} dim {site.dim} is sharded on "{axis}"'
    left = [*found.here, *(reason for stop in found.stops for reason in stop.reasons)]
    if left == reasons:
        raise ShardlogError(f"nothing changes without the annotation of {culprit}", where=site.value)
    if not left:
        return culprit, "the axis is on no tensor that it could come through"
    return culprit, f"next in its way is: {left[0].reason}: {left[0].sentence}"


class Search:
    """Answers about one axis."""

    def __init__(self, explainer: Explainer, axis: str) -> None:
        self.explainer, self.axis = explainer, axis
        self.history, self.values = explainer.history, explainer.values
        self.atoms = {atom.id for atom in explainer.meshes.atoms if atom.axis == axis}

    def explain(self, value: Value, dim: int) -> WhyNot:
        """Why a dimension is not sharded on the axis. Raises ShardlogError where it is."""
        cell = self.history.cell(value.place)
        held = {x for d, x in self.sharded(cell) if d == dim}
        if self.atoms & held and self.atoms <= held | {x for _, x in self.sharded(cell)}:
            hint = "`shardlog why` says where it comes from"
            raise ShardlogError(
                f'{value.name} dim {dim} is sharded on "{self.axis}"',
                where=value.where,
                hint=hint,
            )
        self.visited: dict[tuple[int, int], int] = {}
        stops = tuple(islice(self.stops(cell, dim), _MOST_STOPS))
        here = () if any(stop.distance == 0 for stop in stops) else tuple(self.here(cell, dim))
        site = Site(value.name, value.type, dim, value.where)
        return WhyNot(site, self.axis, here, stops, len(self.visited))

    def sharded(self, cell: int) -> list[tuple[int, int]]:
        """(dimension, atom) of a cell at the end."""
        content = self.history.content(cell, self.history.end)
        return [(d, x) for d, _, x in self.history.facts(content).get("sharded", ())]

    def here(self, cell: int, dim: int) -> Iterator[Reason]:
        """What the tensor itself has against the axis."""
        facts = self.history.facts(self.history.content(cell, self.history.end))
        for d, x in self.sharded(cell):
            if d != dim and x in self.atoms:
                yield Reason("in use", f"dim {d} of the tensor has it", "", *self.origin(cell, d, x))
                break
        for x, why in facts.get("fixed", ()):
            if x in self.atoms:
                yield Reason(why, f"the tensor is explicitly {why} on it", "", *self.annotated(cell))
                break
        if (dim,) in facts.get("closed", ()):
            yield Reason("closed", "the dimension is closed", "", *self.annotated(cell))

    # ---- The way ----------------------------------------------------------------------------------------

    def stops(self, cell: int, dim: int) -> Iterator[Stop]:
        """The ops at which the axis stopped, nearest first."""
        queue = deque([(cell, dim, 0)])
        self.visited[cell, dim] = 0
        while queue:
            cell, dim, distance = queue.popleft()
            for item, slot in self.turns(cell):
                places = self.history.slots(item)
                near: dict[tuple[int, int, int], None] = {}
                for f, u, d in self.shared(item, slot, dim):
                    other = self.history.cell(places[u])
                    if any(e == d and x in self.atoms for e, x in self.sharded(other)):
                        near[f, u, d] = None
                    elif (other, d) not in self.visited:
                        self.visited[other, d] = distance + 1
                        queue.append((other, d, distance + 1))
                for f, u, d in list(near)[:1]:
                    yield self.stop(item, slot, dim, f, u, d, distance)

    def turns(self, cell: int) -> list[tuple[int, int]]:
        """The items that take turns with a cell, and the slots in which they hold it."""
        run = self.explainer.record
        return [(item, slot) for item, slot in run.turns(cell) if run.static(item, -1) >= 0]

    def shared(self, item: int, slot: int, dim: int) -> Iterator[tuple[int, int, int]]:
        """(factor, slot, dimension) of other slots that share a factor with a dimension."""
        maps = self.maps(item)
        factors = [f for t, d, _, f in maps if (t, d) == (slot, dim)]
        return ((f, t, d) for f in factors for t, d, _, g in maps if f == g and t != slot)

    def maps(self, item: int) -> list[tuple[int, ...]]:
        """The factors of an item's dimensions."""
        static = self.explainer.record.static(item, -1)
        return self.history.given(static, len(self.history.slots(item)))["maps"]

    # ---- What stopped it --------------------------------------------------------------------------------

    def stop(
        self, item: int, slot: int, dim: int, factor: int, near: int, near_dim: int, distance: int
    ) -> Stop:
        op, places, explainer = self.values.op(item), self.history.slots(item), self.explainer
        return Stop(
            op.name,
            op.where,
            explainer.site(places[near], near_dim, op.slots[near]),
            explainer.site(places[slot], dim, op.slots[slot]),
            explainer.factor(factor),
            distance,
            tuple(dict.fromkeys(self.reasons(item, slot, factor))),
        )

    def reasons(self, item: int, slot: int, factor: int) -> Iterator[Reason]:
        turn = self.history.last_turn(item)
        assert turn is not None, "items that take no turns are not on the way"
        rows = [row for row in turn.rows("blocked") if row[:2] == (slot, factor) and row[3] in self.atoms]
        for row in rows:
            proof = turn.proof("blocked", row)
            assert proof is not None
            says = _says(proof)
            culprit = self.culprit(item, row, says)
            sentence = self.explainer.sentence(says, self.values.op(item).slots)
            yield Reason(row[4], sentence, rule_place(says), *culprit)
        if not rows:
            yield Reason("overflow", "the axis is in the dimension, but outside of the factor", "", "")

    def culprit(self, item: int, row: Sequence[int | str], says: Proof) -> tuple[str, int]:
        """Where what is in the way comes from."""
        slot, _, _, atom, reason, other, factor = row
        assert isinstance(slot, int) and isinstance(atom, int) and isinstance(other, int)
        cells = [self.history.cell(place) for place in self.history.slots(item)]
        if reason in ("closed", "replicated", "unreduced", "mesh"):
            return self.annotated(cells[other])
        if reason == "clash":
            rivals = {value for name, value in says.bindings if name in ("x", "y")} - {atom}
        elif reason in ("in use", "taken"):
            rivals = {atom}
        else:
            return "", -1
        dims = [(t, d) for t, d, _, g in self.maps(item) if g == factor]
        for t, d in sorted(dims, key=lambda at: at[0] != other):
            for e, x in self.sharded(cells[t]):
                if e == d and x in rivals:
                    return self.origin(cells[t], d, x)
        return "", -1

    def origin(self, cell: int, dim: int, atom: int) -> tuple[str, int]:
        """Where a dimension got an atom from, and the annotated cell."""
        turns, annotated = self.explainer.origin(cell, dim, atom)
        annotation = self.explainer.annotation(annotated)
        where = f" at {annotation.where}" if annotation.where else ""
        name = self.values.name(cell)
        by = f", by {turns} turn{'s' if turns > 1 else ''}" if turns else ""
        axis = self.explainer.axis(atom)
        return (
            f'{name} dim {dim} has "{axis}" from the annotation of {annotation.value}{where}{by}',
            annotated,
        )

    def annotated(self, cell: int) -> tuple[str, int]:
        """What the user said of a cell."""
        annotation = self.explainer.annotation(cell)
        if not annotation.text:
            return "", -1
        where = f" at {annotation.where}" if annotation.where else ""
        return f"{annotation.value} is annotated {annotation.text}{where}", cell


def _says(proof: Proof) -> Proof:
    """The step of a proof whose sentence says most."""
    steps = list(proof.steps())
    return next(
        (p for name in _CLOSER for p in steps if p.relation == name and p.source and p.source.sentence), proof
    )
