"""Why a dimension is sharded on an axis: from change to change, back to the annotations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from ...engine.provenance.proof import Proof, fill
from ...errors import ShardlogError, closest
from ...program.factors import factor_name, loop_name
from ...program.ids import Cell, Place
from ...rulebook import columns
from ...rulebook.columns import Compatible, Gains, Loses, Sharded
from ...runs.records.history import Event, History, given
from ...runs.records.obstacles import Obstacles
from ...runs.records.record import Annotation, RunRecord, TensorValue
from ..answers.why import Explanation
from ..steps import Loss, Site, WhyStep, rule_place
from .chains import Chain, Chains, KeptChain, Steps
from .values import Values
from .visits import Visits

Held = tuple[Cell, int, int, int]  # cell, dimension, atom, and the change before which it is so


class Explainer:
    """Answers about one run."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self.history = History(self.record)
        self.obstacles = Obstacles(self.history)
        self.values = Values(self.record)
        self.visits = Visits(self.record)
        self.meshes = self.record.meshes
        self._proofs: dict[tuple[tuple[int, ...], tuple[int, ...]], Proof] = {}
        self._checked: dict[Proof, int] = {}
        # What values behind each other have in common: without these, a chain of them takes its square.
        self._ways: dict[Held, Chain] = {}
        self._new_ways = Chains()
        # Steps refer to the explainer. Those that nobody holds any more are freed.
        self._steps: WeakValueDictionary[tuple[int, int, tuple[int, ...]], WhyStep] = WeakValueDictionary()
        self._used: dict[Held, tuple[frozenset[Cell], list[Held]]] = {}
        self._needs: dict[Held, frozenset[Cell]] = {}

    # ---- Questions --------------------------------------------------------------------------------------

    def why(self, name: str, dim: int | None = None, axis: str | None = None) -> list[Explanation]:
        """An explanation for every axis of the values called ``name``, or for ``dim`` and ``axis`` alone.

        Raises ShardlogError for values, dimensions and axes that do not exist.
        """
        answers = []
        for value in self.values_named(name, dim, axis):
            answers += list(self._explanations(value, dim, axis))
        return answers

    def values_named(self, name: str, dim: int | None, axis: str | None) -> list[TensorValue]:
        """The values called ``name`` that have the dimension: regions beside each other may use a name twice.

        Raises ShardlogError for values, dimensions and axes that do not exist.
        """
        values = self.values.find(name)
        fitting = [value for value in values if dim is None or dim in range(len(value.shape))]
        for value in fitting or values:
            self._check(value, dim, axis)
        return fitting

    def _check(self, value: TensorValue, dim: int | None, axis: str | None) -> None:
        if dim is not None and dim not in range(len(value.shape)):
            hint = f"its dimensions are 0 to {len(value.shape) - 1}" if value.shape else "it is a scalar"
            message = f"{value.name} has no dimension {dim}"
            raise ShardlogError(message, where=value.where or self.record.name, hint=hint)
        axes = [name for mesh in self.meshes.meshes for name, _ in mesh.axes]
        if axis is not None and axis not in axes:
            meshes = (f"@{m.name} has {', '.join(name for name, _ in m.axes)}" for m in self.meshes.meshes)
            near = closest(axis, axes)
            hint = "; ".join([*meshes, *([near] if near.startswith("did") else [])])
            raise ShardlogError(f"no mesh has an axis {axis}", where=self.record.name, hint=hint)

    def _explanations(self, value: TensorValue, dim: int | None, axis: str | None) -> Iterator[Explanation]:
        cell, history = self.history.cell(value.place), self.history
        content = history.content(cell, history.end)
        # The atoms of an axis mostly go together.
        together: dict[tuple[object, ...], list[int]] = {}
        for d, _, atom in sorted(history.facts(content).get("sharded", ())):
            name = self.meshes.atoms[atom].axis
            if (dim is None or d == dim) and axis in (None, name):
                key = (d, name, self.way(cell, d, atom).number)
                together.setdefault(key, []).append(atom)
        for (d, *_), atoms in together.items():
            assert isinstance(d, int)
            yield self.explain(value, d, atoms)

    def explain(self, value: TensorValue, dim: int, atoms: Sequence[int]) -> Explanation:
        """Why dimension ``dim`` of a value is sharded on atoms of an axis that went the same way."""
        cell = self.history.cell(value.place)
        way = self.way(cell, dim, atoms[0])
        origin = way.origin
        needs = sorted({n for atom in atoms for n in self._rests_on(cell, dim, atom)} - {origin})
        axis, site = self.axes(atoms), Site(value.name, value.type, dim, value.where, value.stack)
        visits, given = self.visits.chain(
            self, origin, lambda: self._began(way, site, atoms[0]), tuple(atoms)
        )
        return Explanation(
            site,
            axis,
            value.place,
            tuple(atoms),
            Steps(way, lambda event, d: self._step(event, d, tuple(atoms)), visits),
            self.annotation(given),
            tuple(map(self.annotation, (given, *needs))),
        )

    def _began(self, way: Chain | KeptChain, site: Site, atom: int) -> Site:
        """The dimension that the way of an atom begins at; ``site``, where it has no changes."""
        if not len(way):
            return site
        event, dim = way[len(way) - 1]
        slot, from_dim = self.source(event, dim, atom) or (event.slot, dim)
        return self.site(self.history.slots(event.item)[slot], from_dim)

    # ---- Steps ------------------------------------------------------------------------------------------

    def origin(self, cell: Cell, dim: int, atom: int) -> tuple[int, Cell]:
        """The number of changes by which a dimension got an atom, and the annotated cell they begin at."""
        way = self.way(cell, dim, atom)
        return len(way), way.origin

    def way(self, cell: Cell, dim: int, atom: int) -> Chain | KeptChain:
        """The changes that brought an atom to a dimension."""
        kept = self.record.way(cell, dim, atom)
        return self._way(cell, dim, atom) if kept is None else KeptChain(kept, self.history.event)

    def _way(self, cell: Cell, dim: int, atom: int) -> Chain:
        waiting: list[tuple[Held, Event]] = []
        held: Held = (cell, dim, atom, self.history.end)
        while held not in self._ways:
            event = self.history.gained(*held)
            before = None if event is None else self._before(event, *held[1:3])
            if event is not None:
                waiting.append((held, event))
            if before is None:
                way = self._new_ways.beginning(held[0])
                break
            held = before
        else:
            way = self._ways[held]
        for gained, event in reversed(waiting):
            way = self._ways[gained] = self._new_ways.longer(way, event, gained[1])
        return way

    def _before(self, event: Event, dim: int, atom: int) -> Held | None:
        source = self.source(event, dim, atom)
        if source is None:
            return None
        slot, from_dim = source
        cell = self.history.cell(self.history.slots(event.item)[slot])
        return (cell, from_dim, atom, self.history.start(event))

    def source(self, event: Event, dim: int, atom: int) -> tuple[int, int] | None:
        """The slot and dimension an atom comes from; None where the annotation itself took the turn."""
        rows = given(self.proof(event, dim, atom))
        return next(((row.slot, row.dim) for row in rows if row.axis == atom), None)

    def _step(self, event: Event, dim: int, atoms: tuple[int, ...]) -> WhyStep:
        """A step that atoms of an axis went together; values behind it have it in common."""
        key = (event.number, dim, atoms)
        step = self._steps.get(key)
        if step is None:
            names = dict.fromkeys(atoms, self.axes(atoms))
            self._steps[key] = step = self._made_step(event, dim, atoms[0], names)
        return step

    def _made_step(self, event: Event, dim: int, atom: int, names: Mapping[int, str]) -> WhyStep:
        proof = self.proof(event, dim, atom)
        op, slots = self.values.op(event.item), self.history.slots(event.item)
        stage = self.history.stage(event)
        source = self.source(event, dim, atom)
        slot, from_dim = source or (event.slot, dim)
        factor, says = self.says(proof, atom)
        others = (row for row in given(proof) if (row.slot, row.dim) != (slot, from_dim))
        return WhyStep(
            "propagation" if source else "priority",
            self.site(slots[event.slot], dim, op.slots[event.slot]),
            names[atom],
            op.name,
            op.where,
            op.stack,
            self.site(slots[slot], from_dim, op.slots[slot]),
            op.roles[slot],
            op.roles[event.slot],
            factor,
            stage,
            event.number,
            self.sentence(says, op.slots, names),
            rule_place(says),
            tuple(f'"{self.axis(x)}" on dim {d} of {op.slots[t]}' for t, d, _, x in dict.fromkeys(others)),
            proof,
            lambda step: self.sentence(step, op.slots),
            lambda: self._losses(event, factor_along(proof, atom)),
        )

    def _losses(self, event: Event, factor: int | None) -> tuple[Loss, ...]:
        """The axes that lost in the turn of a change that came along a factor."""
        rows = [] if factor is None else self.obstacles.lost(event, factor)
        if not rows:
            return ()
        op, places = self.values.op(event.item), self.history.slots(event.item)
        dims = {(row.slot, row.factor): row.dim for row in self.obstacles.maps(event.item)}
        parts: dict[Loses, list[int]] = {}
        for row, _ in rows:
            parts.setdefault(row._replace(position=0, axis=0), []).append(row.axis)
        losses = []
        for row, says in rows:
            together = parts[row._replace(position=0, axis=0)]
            if row.axis != together[0]:
                continue
            axis = self.axes(together)
            losses.append(
                Loss(
                    axis,
                    self.site(places[row.loser], dims[row.loser, row.losing], op.slots[row.loser]),
                    self.site(places[row.holder], dims[row.holder, row.losing], op.slots[row.holder]),
                    factor_name(row.losing),
                    row.reason,
                    self.sentence(says, op.slots, dict.fromkeys(together, axis)),
                    rule_place(says),
                )
            )
        return tuple(dict.fromkeys(losses))

    def proof(self, event: Event, dim: int, atom: int) -> Proof:
        """The proof of the axis that a change gave a dimension."""
        position = next(p for d, p, x in self.history.facts(event.new)["sharded"] if (d, x) == (dim, atom))
        row = Sharded(event.slot, dim, position, atom)
        key = (self.history.around(event), row)
        if key not in self._proofs:
            self._proofs[key] = self.history.proof(event, row)
        return self._proofs[key]

    def says(self, proof: Proof, atom: int) -> tuple[str, Proof]:
        """The factor along which a proof has an atom come (empty where there is none), and the step of the
        proof whose sentence says most."""
        gains = next((p for p in proof.steps() if p.relation == "gains" and Gains(*p.row).axis == atom), None)
        factor = factor_name(Gains(*gains.row).factor) if gains else ""
        return factor, next((p for p in proof.steps() if _passes(p, atom)), gains or proof)

    def _rests_on(self, cell: Cell, dim: int, atom: int) -> Iterable[Cell]:
        kept = self.record.way(cell, dim, atom)
        cells = None if kept is None else kept.needs
        return self.needs((cell, dim, atom, self.history.end)) if cells is None else cells

    def needs(self, sharded: Held) -> Iterable[Cell]:
        """The annotated cells that an axis rests on, by way of all axes that its proofs use."""
        waiting = [sharded]
        while waiting:
            node = waiting[-1]
            if node not in self._used:
                self._used[node] = self._uses(node)
            own, used = self._used[node]
            missing = [other for other in used if other not in self._needs]
            if not missing:
                sets = {self._needs[other] for other in used}
                self._needs[node] = sets.pop() if len(sets) == 1 and not own else own.union(*sets)
                waiting.pop()
            waiting += missing
        return self._needs[sharded]

    def _uses(self, sharded: Held) -> tuple[frozenset[Cell], list[Held]]:
        """The direct grounds of an axis of a dimension: its annotated cell, and axes of dimensions before."""
        cell, dim, atom, before = sharded
        event = self.history.gained(cell, dim, atom, before)
        if event is None:
            return frozenset([cell]), []
        start, slots = self.history.start(event), self.history.slots(event.item)
        proof = self.proof(event, dim, atom)
        annotated = any(step.relation == "annotation" for step in proof.steps())
        used = [(self.history.cell(slots[row.slot]), row.dim, row.axis, start) for row in given(proof)]
        return frozenset([cell] if annotated else []), used

    def check_proofs(self, explanation: Explanation) -> int:
        """Checks the proofs of all steps; returns the number of theirs. Raises ProofError."""
        for step in explanation.steps:
            if step.kind == "visit":
                self._checked[step.proof] = self.visits.check(step)
            if step.proof not in self._checked:
                around = self.history.around(self.history.event(step.change))
                self._checked[step.proof] = self.history.checker(around).check(step.proof)
        return sum(self._checked[step.proof] for step in explanation.steps)

    # ---- Names ------------------------------------------------------------------------------------------

    def axis(self, atom: int) -> str:
        """The axis of an atom, as a sub-axis where it is not whole: ``x``, ``x:(1)2``."""
        return self.axes([atom])

    def axes(self, atoms: Sequence[int]) -> str:
        """The axes that some atoms make up."""
        return self.meshes.text(atoms)

    def site(self, place: Place, dim: int, name: str = "") -> Site:
        """A dimension of the value in a place."""
        value = self.values.value(place)
        return Site(name or value.name, value.type, dim, value.where, value.stack)

    def annotation(self, cell: Cell) -> Annotation:
        """The annotation of a cell."""
        return self.record.annotation(cell)

    def sentence(self, proof: Proof, slots: Sequence[str], axes: Mapping[int, str] | None = None) -> str:
        """The sentence of a proof's rule. Slots, axes (``axes`` has the names of some) and factors have
        names. The type of a rule's variable tells which of them a value is."""
        if proof.source is None:
            return ""
        types, axis_names = dict(proof.source.types), axes or {}

        def name(variable: str, value: Any) -> str:
            match types.get(variable):
                case columns.SLOT:
                    return f"{value} ({slots[value]})"
                case columns.AXIS:
                    return f'"{axis_names.get(value) or self.axis(value)}"'
                case columns.FACTOR:
                    return factor_name(value)
                case columns.LOOP:
                    return loop_name(value)
            return str(value)

        return fill(proof.source.sentence, {v: name(v, value) for v, value in proof.bindings})


def factor_along(proof: Proof, atom: int) -> int | None:
    """The factor along which a proof has an atom come."""
    gains = (Gains(*step.row) for step in proof.steps() if step.relation == "gains")
    return next((row.factor for row in gains if row.axis == atom), None)


def _passes(proof: Proof, atom: int) -> bool:
    return proof.relation == "compatible" and Compatible(*proof.row).axis == atom
