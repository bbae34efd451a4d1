"""Why a partitioned program has a collective: the op that it serves, the choice there, and the annotations
behind."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from ...engine.provenance.proof import Proof
from ...errors import ShardlogError
from ...program.factors import PASSING, PICKING, factor_name, maps_text
from ...runs.partitioned import PartitionedRun
from ..answers.collective import Because, Begun, ChosenHome, ComparedWay, Moved
from ..answers.why import Explanation
from ..steps import rule_place
from .begun import Sums
from .why import Explainer

if TYPE_CHECKING:
    from ...partition.choice.choosing import Candidate
    from ...partition.facts.knowledge import Knowledge
    from ...partition.layouts import Layout, PieceId, Pieces
    from ...runs.records.record import Annotation, Op, TensorValue

_MOST_WAYS = 4


def why_collectives(explainer: Explainer, program: PartitionedRun, numbers: Iterable[int]) -> list[Moved]:
    """Why a partitioned program has the collectives with these numbers. Raises ShardlogError where it has
    none with one of them."""
    asked, count = Asked(explainer, program), len(program.movements)
    answers = list[Moved]()
    for number in numbers:
        if not 0 <= number < count:
            hint = f"they are numbered from 0 to {count - 1}" if count else "the program has no collectives"
            raise ShardlogError(f"there is no collective {number}", where=explainer.record.name, hint=hint)
        answers.append(asked.moved(number))
    return answers


class Asked:
    """Answers questions about the collectives of a partitioned program."""

    def __init__(self, explainer: Explainer, program: PartitionedRun) -> None:
        self.explainer, self.program, self.axes = explainer, program, program.axes
        self._sums = Sums(program)

    def moved(self, number: int) -> Moved:
        """Why there is a collective."""
        purpose = self.program.movements[number].purpose
        knowledge, choice = purpose.knowledge, purpose.choice
        before, partial, after = self.layouts(purpose)
        return Moved(
            self.program.choice,
            self.program.collectives[number],
            before,
            after,
            partial,
            tuple(n for n, each in enumerate(self.program.movements) if each.purpose is purpose),
            tuple(Begun(op.name, op.slots[taken], op.where, op.stack) for op, taken in self._begun(number)),
            tuple(self._placed(number)),
            self.program.traits.lowering(purpose.op.name) == "collective",
            purpose.inside,
            maps_text(knowledge.maps, knowledge.roles.count("operand"))
            if choice is not None and knowledge is not None
            else "",
            tuple(self._ways(knowledge, choice)) if choice is not None and knowledge is not None else (),
            tuple(self._because(knowledge, choice.taken))
            if choice is not None and knowledge is not None
            else (),
            tuple(self._causes(number)),
            self.program.besides.get(number),
        )

    def layouts(self, purpose: Any) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
        """The layout of a tensor before (and over which axes it is partial) and after, as text."""
        start = purpose.start
        partial = self._text(start.partial) if start is not None else ""
        return self._dims(start), partial, self._dims(purpose.goal)

    def held(self, purpose: Any, number: int) -> tuple[tuple[str, ...], str]:
        """The layout, as text, of a tensor at an op that takes more of it than a device has, and the axes
        over which it is partial. ``number`` is the tensor's, -1 if it was not in the program."""
        layouts = [*purpose.held[purpose.slot :][:1], *self.program.homes.get(purpose.value, ())]
        if layouts:
            return self._dims(layouts[0]), self._text(layouts[0].partial)
        return (self._propagated(self.explainer.record.value(number)) if number >= 0 else ()), ""

    @staticmethod
    def type_of(purpose: Any) -> str:
        """The type of the value that a collective moves."""
        return "" if purpose.value is None else str(purpose.value.type)

    # ---- Texts ------------------------------------------------------------------------------------------

    def _text(self, pieces: Pieces) -> str:
        return ",".join(self.axes.names(pieces))

    def _dims(self, layout: Layout | None) -> tuple[str, ...]:
        return () if layout is None else tuple(self._text(pieces) for pieces in layout.dims)

    def _placed(self, number: int) -> Iterator[ChosenHome]:
        """The tensor that moves, and other tensors of a computed op that use axes of the collective, if
        their shardings differ from propagation's."""
        purpose, primes = self.program.movements[number].purpose, self._primes(number)
        values = [*purpose.op.operands, *purpose.op.results] if purpose.computed else []
        moved = [value for value in (purpose.value, purpose.to) if value is not None]
        values.sort(key=lambda value: value not in moved)
        listed = set[ChosenHome]()
        for value in (*values, *moved):
            name, tensor = self._tensor(value)
            if tensor is None:
                continue
            propagated, moves = self._propagated(tensor), value in moved
            for home in self.program.homes.get(value, ()):
                concerned = moves or not primes.isdisjoint(self.axes.finely(home.pieces))
                placed = ChosenHome(name, self._dims(home), self._text(home.partial), propagated)
                if concerned and placed not in listed and (placed.partial or placed.dims != propagated):
                    listed.add(placed)
                    yield placed

    def _tensor(self, value: Any) -> tuple[str, TensorValue | None]:
        """The name of a value, and its tensor: a result of an op, or a value that a loop carries."""
        if not isinstance(value.owner, ir.Block):
            number, carried = self.program.names.result(value), ""
        else:
            loop, i = value.owner.owner.operation, ir.BlockArgument(value).arg_number
            is_loop = self.program.traits.lowering(loop.name) == "loop"
            number = self.program.names.result(loop.results[i]) if is_loop else -1
            carried = "the value that the loop carries for "
        tensor = self.explainer.record.value(number) if number >= 0 else None
        return (f"{carried}{tensor.name}" if tensor else ""), tensor

    def _propagated(self, value: TensorValue) -> tuple[str, ...]:
        """How propagation sharded a tensor."""
        history, atoms = self.explainer.history, self.explainer.meshes.atoms
        by_dim: list[dict[PieceId, None]] = [{} for _ in value.shape]
        content = history.content(history.cell(value.place), history.end)
        for dim, _, x in sorted(history.facts(content).get("sharded", ())):
            piece = self.axes.at(atoms[x].mesh, atoms[x].axis, atoms[x].lo)
            if piece is not None:
                by_dim[dim][piece] = None
        return tuple(self._text(tuple(pieces)) for pieces in by_dim)

    # ---- The choice -------------------------------------------------------------------------------------

    def _ways(self, knowledge: Knowledge, choice: Any) -> Iterator[ComparedWay]:
        """The way that was taken, and others, the cheapest first."""
        compared = choice.compared
        taken = [c.factors for c in compared.candidates].index(choice.taken.factors)
        order = sorted(range(len(compared.candidates)), key=lambda n: (n != taken, compared.costs[n], n))
        for n in order[: 1 + _MOST_WAYS]:
            proof = None if n == taken else self._book.dearer(compared.facts, n, taken)
            factors = tuple((_factor(f), self._text(p)) for f, p in compared.candidates[n].factors)
            lost, rule = self._sentence(proof, "this way", "the one that is taken")
            yield ComparedWay(factors, round(compared.costs[n]), n == taken, lost, rule)

    def _because(self, knowledge: Knowledge, taken: Candidate) -> Iterator[Because]:
        """Why the op can be computed in these parts, for each of its factors."""
        for factor, pieces in taken.factors:
            relation, row = "splits", tuple[int, ...]((factor,))
            if factor <= PICKING:
                relation, row = "picks", (PICKING - factor,)
            elif factor <= PASSING:
                relation, row = "passes_partial", (PASSING - factor, min(knowledge.passes[PASSING - factor]))
            sentence, rule = self._sentence(self._book.because(knowledge.signature, relation, row))
            yield Because(_factor(factor), self._text(pieces), sentence, rule)

    def _sentence(self, proof: Proof | None, *candidates: str) -> tuple[str, str]:
        """The sentence of a proof, with factors by name and the candidate that it is compared with in
        words."""
        if proof is None or proof.source is None:
            return "", ""
        sentence = proof.source.sentence
        for name, value in proof.bindings:
            types = dict(proof.source.types)
            word = _factor(value) if types.get(name) == "factor_id" else str(value)
            if candidates and types.get(name) == "candidate_id":
                word = candidates[name == "than"]
                sentence = sentence.replace(f"Candidate {{{name}}}", word)
            sentence = sentence.replace(f"{{{name}}}", word)
        return sentence[:1].upper() + sentence[1:], rule_place(proof)

    @property
    def _book(self) -> Any:
        return self.program.result.book

    # ---- Where the axes come from -----------------------------------------------------------------------

    def _causes(self, number: int) -> Iterator[Explanation]:
        """For each axis of the collective, why a tensor at the op has it; the tensor that moves comes
        first."""
        for value, dim, atoms in self._holders(number):
            yield self.explainer.explain(value, dim, atoms)

    def origins(self, number: int) -> Iterator[tuple[int, Annotation]]:
        """The tensors at the op that have an axis of the collective, by number, and where it comes from."""
        for value, dim, atoms in self._holders(number):
            cell = self.explainer.history.cell(value.place)
            yield value.number, self.explainer.annotation(self.explainer.origin(cell, dim, atoms[0])[1])

    def spec(self, purpose: Any) -> Annotation | None:
        """The spec by which an operand enters a ``shard_map``."""
        item = self.program.names.item(purpose)
        inside = None if item is None else self.program.result.record.entering(item, purpose.slot)
        if inside is None:
            return None
        cell = self.explainer.history.cell(inside)
        given = self.explainer.record.given_shardings()
        return next((annotation for annotation in given if annotation.spec and annotation.cell == cell), None)

    def _holders(self, number: int) -> Iterator[tuple[TensorValue, int, list[int]]]:
        """The tensors at the op that have an axis of the collective: a dimension, and the axis's atoms."""
        sent, primes = self.program.movements[number], self._primes(number)
        moved = {p for p in range(len(self.axes.pieces)) if not primes.isdisjoint(self.axes.primes[p])}
        listed: set[tuple[int, int, str]] = set()
        held: list[tuple[int, Layout | None]] = [each for one in sent.purposes for each in self._held(one)]
        for op, taken in self._begun(number):
            held += [(tensor, None) for tensor in op.values[:taken] if tensor >= 0]
        for tensor, layout in held:
            value = self.explainer.record.value(tensor)
            for dim in range(len(value.shape)):
                of_value = layout is not None and len(layout.dims) == len(value.shape)  # or of its blocks
                lies = moved.intersection(layout.dims[dim]) if layout is not None and of_value else moved
                for axis, atoms in self._atoms(value, dim, lies).items():
                    if (value.number, dim, axis) not in listed:
                        listed.add((value.number, dim, axis))
                        yield value, dim, atoms

    def _primes(self, number: int) -> set[int]:
        """The pieces of prime sizes that a collective runs over, or that are elsewhere after it."""
        sent = self.program.movements[number]
        pieces = sent.pieces or self._changed(sent.purpose.start, sent.purpose.goal)
        return set(self.axes.finely(pieces))

    def _begun(self, number: int) -> list[tuple[Op, int]]:
        """The ops that make the partial sums of a collective, where others hand them on, and how many
        operands they have."""
        sums = self._sums.begin(self.program.movements[number].purpose, self._primes(number))
        counted = ((self.program.names.as_read(op), len(op.operands)) for op in sums if _takes_tensors(op))
        return [(op, taken) for op, taken in counted if op is not None]

    def _held(self, purpose: Any) -> Iterator[tuple[int, Layout | None]]:
        """The tensors at the op, by number, and their layouts, where they are known; the one that moves comes
        first."""
        op = self.program.names.op(purpose)
        if op is None:
            return
        if purpose.inside:  # which of its tensors it is for, only the user knows
            yield from ((tensor, None) for tensor in op.values if tensor >= 0)
            return
        slots = list(enumerate(purpose.held))
        if not slots and purpose.start is not None:
            slots = [(purpose.slot, purpose.start)]
        slots.sort(key=lambda pair: pair[0] != purpose.slot)
        yield from ((op.values[slot], layout) for slot, layout in slots if slot < len(op.values))
        result = self.program.names.result(purpose.to)
        if result >= 0 and purpose.goal is not None:
            yield result, purpose.goal

    def _changed(self, start: Layout | None, goal: Layout | None) -> Pieces:
        """The pieces that lie elsewhere afterwards."""
        if start is None or goal is None:
            return ()
        pairs = zip(start.dims, goal.dims, strict=True)
        return tuple(dict.fromkeys(p for a, b in pairs if a != b for p in (*a, *b)))

    def _atoms(self, value: TensorValue, dim: int, pieces: Container[int]) -> dict[str, list[int]]:
        """The atoms of pieces that a dimension of a tensor has, by their axes."""
        history, atoms, by_axis = self.explainer.history, self.explainer.meshes.atoms, dict[str, list[int]]()
        content = history.content(history.cell(value.place), history.end)
        for d, _, x in history.facts(content).get("sharded", ()):
            if d == dim and self.axes.at(atoms[x].mesh, atoms[x].axis, atoms[x].lo) in pieces:
                by_axis.setdefault(atoms[x].axis, []).append(x)
        return by_axis


def _takes_tensors(op: Any) -> bool:
    """Whether an op takes more than scalars. A value made from scalars alone, such as zeros, is no sum."""
    return any(ir.ShapedType(operand.type).rank for operand in op.operands)


def _factor(factor: int) -> str:
    """The name of a factor. Negative numbers are ways to pass partial sums on, and to pick elements along a
    factor, see ``rules/partition/candidates.dl``."""
    if factor <= PICKING:
        return f"picked along {factor_name(PICKING - factor)}"
    return factor_name(factor) if factor >= 0 else "of partial sums"
