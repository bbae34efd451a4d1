"""Why a dimension is not sharded on an axis: where the axis stopped on its way, and the reason.

The way follows factors: from a dimension to the dimensions that share a factor with it in an op, and so on.
Where one has the axis and the next has not, ``rules/propagation/blocked.dl`` says why, for a turn at the
end of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from ...engine.provenance.proof import Derivations, Proof
from ...errors import ShardlogError
from ...program.factors import factor_name
from ...program.ids import NO_CELL, Cell, Content, Item, first_place
from ...program.mlir.origins import at
from ...rulebook.columns import AXIS, AnnotationWaits, Denied
from ...runs.records.obstacles import telling
from ...runs.records.record import TensorValue
from ..answers.why_not import WhyNot
from ..steps import Before, Reason, Site, Stop, rule_place
from .why import Explainer

if TYPE_CHECKING:  # answers of saved runs need no jaxlib
    from ...runs.result import Result
    from .nearby import Nearby

_MOST_STOPS = 20  # stops on the way of an axis, at most
End = tuple[int, int]  # a slot of an item, and a dimension of it


def why_not(explainer: Explainer, name: str, dim: int, axis: str) -> list[WhyNot]:
    """Why dimension ``dim`` of the values called ``name`` is not sharded on a mesh axis.

    Raises ShardlogError for values, dimensions and axes that do not exist, and where it is sharded on the
    axis.
    """
    search = WhyNotSearch(explainer, axis)
    answers = []
    for value in explainer.values_named(name, dim, axis):
        answers.append(search.explain(value, dim))
    return answers


def after_removal(result: Result, explanation: WhyNot) -> tuple[str, str] | None:
    """The outcome without the annotation behind the first culprit; None where there is no culprit.

    Returns the annotated value, and whether it gets the axis without that annotation or what stops it next.
    Raises ShardlogError where nothing changes.
    """
    from .replay import without  # which runs again

    reasons = [*explanation.here, *(reason for stop in explanation.stops for reason in stop.reasons)]
    annotations = (result.record.annotation(reason.cell) for reason in reasons if reason.cell >= 0)
    first = next((a for a in annotations if a.text and not a.spec), None)
    if first is None:
        return None
    site, axis, culprit, cell = explanation.site, explanation.axis, first.value, first.cell
    try:
        again = why_not(Explainer(without(result, [cell]).record), site.value, site.dim, axis)
        answer_then = next(answer for answer in again if answer.site == site)
    except ShardlogError:
        return culprit, f'{site.value} dim {site.dim} is sharded on "{axis}"'
    left = [*answer_then.here, *(reason for stop in answer_then.stops for reason in stop.reasons)]
    if left == reasons:
        raise ShardlogError(f"nothing changes without the annotation of {culprit}", where=site.value)
    if not left:
        return culprit, "the axis is on no tensor that it could come through"
    return culprit, f"next in its way is: {left[0].reason}: {left[0].sentence}"


class WhyNotSearch:
    """Answers about one axis."""

    def __init__(self, explainer: Explainer, axis: str) -> None:
        self.explainer, self.axis = explainer, axis
        self.history, self.values = explainer.history, explainer.values
        self.obstacles = explainer.obstacles
        self.atoms = {atom.id for atom in explainer.meshes.atoms if atom.axis == axis}
        # Thousands of ops are alike: what their rules and contents say is looked up once.
        self._on_axis: dict[Content, frozenset[int]] = {}
        self._nearby: Nearby | None = None
        self._shared: dict[tuple[int, int, int], tuple[tuple[int, int, int], ...]] = {}

    def explain(self, value: TensorValue, dim: int, most: int = _MOST_STOPS) -> WhyNot:
        """Why a dimension is not sharded on the axis, with ``most`` ops that stopped it. Raises ShardlogError
        where it is."""
        cell = self.history.cell(value.place)
        held = {x for d, x in self.sharded(cell) if d == dim}
        if self.atoms & held and self.atoms <= held | {x for _, x in self.sharded(cell)}:
            hint = "`shardlog why` says where it comes from"
            raise ShardlogError(
                f'{value.name} dim {dim} is sharded on "{self.axis}"',
                where=value.where or self.explainer.record.name,
                hint=hint,
            )
        site = Site(value.name, value.type, dim, value.where, value.stack)
        if manual := self.manual(value):
            return WhyNot(site, self.axis, (manual,), (), 0)
        self.seen = bytearray()  # the dimensions that it could come through
        self.dead_ends: dict[Item, None] = {}
        stops = tuple(islice(self.stops(cell, dim), most))
        here = () if any(stop.distance == 0 for stop in stops) else tuple(self.here(cell, dim))
        if not stops and not here:  # it may be on the other side of these
            ends = [(item, self.values.op(item)) for item in islice(self.dead_ends, _MOST_STOPS)]
            here = tuple(self.no_rule(item, at(op.where, op.stack)) for item, op in ends)
        return WhyNot(site, self.axis, here, stops, self.seen.count(1))

    def manual(self, value: TensorValue) -> Reason | None:
        """The reason that the axis is manual around a value, if it is."""
        for axis, where in value.manual:
            if axis == self.axis:
                sentence = f"Manual axis of the shard_map at {where}"
                return Reason("manual", f"{sentence}: inside, a tensor is a device's own part.", "", "")
        return None

    def sharded(self, cell: Cell) -> list[tuple[int, int]]:
        """(dimension, atom) of a cell at the end."""
        content = self.history.content(cell, self.history.end)
        return [(d, x) for d, _, x in self.history.facts(content).get("sharded", ())]

    def on_axis(self, content: Content) -> frozenset[int]:
        """The dimensions with some of the axis, where a cell has this content."""
        if content not in self._on_axis:
            sharded = self.history.facts(content).get("sharded", ())
            self._on_axis[content] = frozenset(d for d, _, x in sharded if x in self.atoms)
        return self._on_axis[content]

    def here(self, cell: Cell, dim: int) -> Iterator[Reason]:
        """The reasons in the tensor itself."""
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

    def stops(self, cell: Cell, dim: int) -> Iterator[Stop]:
        """The ops at which the axis stopped, nearest first."""
        nearby = self.nearby(dim)
        near, starts, looked_at, rank = nearby.near, nearby.starts, nearby.looked_at, nearby.rank
        self.seen = seen = bytearray(len(looked_at))
        now, distance = [cell * rank + dim], 0
        seen[now[0]] = 1
        while now:
            following = list[int]()
            for node in now:
                if not looked_at[node]:
                    for other in near[starts[node] : starts[node + 1]]:
                        if not seen[other]:
                            seen[other] = 1
                            following.append(other)
                    continue
                cell, dim = Cell(node // rank), node % rank
                for item, slot in self.items(cell):
                    if self.obstacles.unknown(item):
                        yield from self.unruled(item, slot, dim, distance)
                    stopped: tuple[int, int, int] | None = None
                    for f, u, d in self.shared(item, slot, dim):
                        other_cell = self.history.cell(self.history.slots(item)[u])
                        other = other_cell * rank + d
                        if d in self.on_axis(self.history.content(other_cell, self.history.end)):
                            stopped = stopped or (f, u, d)
                        elif not seen[other]:
                            seen[other] = 1
                            following.append(other)
                    if stopped is not None:
                        yield self.stop(item, slot, dim, *stopped, distance)
            now, distance = following, distance + 1

    def nearby(self, dim: int) -> Nearby:
        """The dimensions next to others, of tensors with at least this dimension."""
        if self._nearby is None or self._nearby.rank <= dim:
            from .nearby import Nearby  # it loads NumPy

            record = self.explainer.record
            self._nearby = Nearby(record, self.obstacles, self.shared, self.on_axis, dim)
        return self._nearby

    def items(self, cell: Cell) -> list[tuple[Item, int]]:
        """The ops and edges that hold a cell, and in which slot."""
        run = self.explainer.record
        return [(item, slot) for item, slot in run.turns(cell) if item < run.items]

    def shared(self, item: Item, slot: int, dim: int) -> tuple[tuple[int, int, int], ...]:
        """(factor, slot, dimension) of other slots that share a factor with a dimension."""
        maps = self.obstacles.maps(item)
        key = id(maps), slot, dim  # they live as long as the obstacles
        if key not in self._shared:
            factors = [row.factor for row in maps if (row.slot, row.dim) == (slot, dim)]
            self._shared[key] = tuple(
                (factor, row.slot, row.dim)
                for factor in factors
                for row in maps
                if row.factor == factor and row.slot != slot
            )
        return self._shared[key]

    # ---- What stopped it --------------------------------------------------------------------------------

    def unruled(self, item: Item, slot: int, dim: int, distance: int) -> Iterator[Stop]:
        """An op without a rule, if another tensor of it has the axis."""
        self.dead_ends[item] = None
        for u, place in enumerate(self.history.slots(item)):
            held = [d for d, x in self.sharded(self.history.cell(place)) if u != slot and x in self.atoms]
            if held:
                reasons = (self.no_rule(item),)
                yield self._stop(item, (slot, dim), (u, held[0]), "", distance, reasons)
                return

    def no_rule(self, item: Item, where: str = "") -> Reason:
        op, reasons = self.values.op(item), self.explainer.record.op_facts(item)["no_rule"]
        why = f": {reasons[0][0]}" if reasons else ""
        return Reason("no rule", f"No rule says how {op.name}{where} is sharded{why}.", "", "")

    def stop(
        self, item: Item, slot: int, dim: int, factor: int, near: int, near_dim: int, distance: int
    ) -> Stop:
        reasons = tuple(dict.fromkeys(self.reasons(item, slot, factor, (near, near_dim))))
        name = factor_name(factor)
        return self._stop(item, (slot, dim), (near, near_dim), name, distance, reasons)

    def _stop(
        self, item: Item, far: End, near: End, factor: str, distance: int, reasons: tuple[Reason, ...]
    ) -> Stop:
        op = self.values.op(item)
        return Stop(
            op.name,
            op.where,
            op.stack,
            self.site(item, *near),
            self.site(item, *far),
            factor,
            distance,
            reasons,
        )

    def site(self, item: Item, slot: int, dim: int) -> Site:
        """A dimension of a slot."""
        return self.explainer.site(self.history.slots(item)[slot], dim, self.values.op(item).slots[slot])

    def reasons(self, item: Item, slot: int, factor: int, near: End) -> Iterator[Reason]:
        turn = self.obstacles.at_end(item)
        denied = (row for row in _denied(turn) if (row.slot, row.factor) == (slot, factor))
        rows = [row for row in denied if row.axis in self.atoms]
        points_at: dict[str, str] = dict(turn.rows("points_at"))
        parts: dict[Denied, list[int]] = {}
        for row in rows:
            parts.setdefault(row._replace(position=0, axis=0), []).append(row.axis)
        for row in rows:
            together = parts[row._replace(position=0, axis=0)]
            if row.axis != together[0]:
                continue
            proof = turn.proof("denied", row)
            assert proof is not None
            says, axis = telling(proof), self.explainer.axes(together)
            sentence = self.explainer.sentence(
                says, self.values.op(item).slots, dict.fromkeys(together, axis)
            )
            origin, culprit = points_at.get(row.reason, ""), ("", NO_CELL)
            rival = self.rival(item, row, says, origin)
            if rival:
                culprit = self.origin(*rival)
            elif origin == "annotation":
                culprit = self.annotated(self.history.cell(self.history.slots(item)[row.where]))
            yield Reason(
                row.reason,
                sentence,
                rule_place(says),
                *culprit,
                self.before(item, (slot, factor), near, row.axis, rival) if rival else None,
            )
        manual = self.manual(self.values.value(self.history.slots(item)[slot]))
        if manual and not rows:
            yield manual
        elif not rows:
            yield Reason("overflow", "the axis is in the dimension, but outside of the factor", "", "")

    def rival(self, item: Item, row: Denied, says: Proof, origin: str) -> tuple[Cell, int, int] | None:
        """The cell and dimension that hold the obstacle, and its atom, where it is an axis."""
        if origin not in ("axis", "other axis"):
            return None
        cells = [self.history.cell(place) for place in self.history.slots(item)]
        rivals = {row.axis} if origin == "axis" else set(says.values(AXIS)) - {row.axis}
        dims = [(maps.slot, maps.dim) for maps in self.obstacles.maps(item) if maps.factor == row.by]
        for t, d in sorted(dims, key=lambda at: at[0] != row.where):
            for e, x in self.sharded(cells[t]):
                if e == d and x in rivals:
                    return cells[t], d, x
        return None

    # ---- Why it had not come before ---------------------------------------------------------------------

    def before(
        self, item: Item, to: tuple[int, int], near: End, atom: int, rival: tuple[Cell, int, int]
    ) -> Before | None:
        """The reason why an atom had not reached a slot along a factor when the one in its way came; None
        where that was there from the start."""
        history, explainer = self.history, self.explainer
        came = history.gained(*rival, history.end)
        if came is None:
            return None
        start, stage = history.start(came), explainer.record.stage_of[came.turns]
        # Annotations take their turns at the beginning of a stage: before is the end of the last one.
        then = stage - 1 if came.item >= explainer.record.items else stage
        way = explainer.way(history.cell(history.slots(item)[near[0]]), near[1], atom)
        late = [(event, d) for event, d in way if event.number >= start]
        site = self.site(item, to[0], self.dim(item, *to))
        if late:  # the first turn on its way that was taken only after that
            event, dim = late[-1]
            item, site = event.item, self.site(event.item, event.slot, dim)
            to = (event.slot, -1)
        op = self.values.op(item)
        turn = self.obstacles.held(item) if item >= explainer.record.items else None
        if turn is not None:
            waiting = (AnnotationWaits(*row) for row in turn.rows("annotation_waits"))
            proofs = [
                ("reserved", turn.proof("annotation_waits", row)) for row in waiting if row.axis == atom
            ]
        else:
            turn = self.obstacles.turn(item, then, start)
            denied = (row for row in _denied(turn) if (row.slot, row.axis) == (to[0], atom))
            proofs = [(r.reason, turn.proof("denied", r)) for r in denied if to[1] in (-1, r.factor)]
        reasons = self.reasons_of(item, proofs)
        if not reasons:
            first = self.values.op(came.item)
            place = at(first.where, first.stack)
            reasons = (
                Reason("order", f"It could have come, but {first.name}{place} had its turn first.", "", ""),
            )
        return Before(explainer.record.stages[stage], op.name, op.where, op.stack, site, reasons)

    def reasons_of(self, item: Item, proofs: Sequence[tuple[str, Proof | None]]) -> tuple[Reason, ...]:
        """The reasons that proofs of ``denied`` or ``annotation_waits`` give."""
        reasons = []
        for reason, proof in proofs:
            assert proof is not None
            says = telling(proof)
            sentence = self.explainer.sentence(says, self.values.op(item).slots)
            reasons.append(Reason(reason, sentence, rule_place(says), ""))
        return tuple(dict.fromkeys(reasons))

    def dim(self, item: Item, slot: int, factor: int) -> int:
        """The dimension of a slot that has a factor."""
        maps = self.obstacles.maps(item)
        return next(row.dim for row in maps if (row.slot, row.factor) == (slot, factor))

    # ---- Where it comes from ----------------------------------------------------------------------------

    def origin(self, cell: Cell, dim: int, atom: int) -> tuple[str, Cell]:
        """A text for the origin of an atom of a dimension, and the annotated cell."""
        turns, annotated = self.explainer.origin(cell, dim, atom)
        annotation = self.explainer.annotation(annotated)
        name = self.values.name(first_place(cell))
        by = f", by {turns} turn{'s' if turns > 1 else ''}" if turns else ""
        atoms = self.explainer.meshes.atoms
        axis = self.explainer.axes(
            [x for d, x in self.sharded(cell) if d == dim and atoms[x].axis == atoms[atom].axis]
        )
        return (
            f'{name} dim {dim} has "{axis}" from {annotation}{by}',
            annotated,
        )

    def annotated(self, cell: Cell) -> tuple[str, Cell]:
        """A text for the user's annotation of a cell, and the cell."""
        annotation = self.explainer.annotation(cell)
        if not annotation.text:
            return "", NO_CELL
        if annotation.spec:
            return f"{annotation}: {annotation.value} {annotation.text}", cell
        place = at(annotation.where, annotation.stack)
        return f"{annotation.value} is annotated {annotation.text}{place}", cell


def _denied(turn: Derivations) -> Iterator[Denied]:
    return (Denied(*row) for row in turn.rows("denied"))
