"""The ops of a function with the annotations that they see, and the annotations that they get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...program.carried import ENTRIES, HALO, INSERTED, OFFSETS, PARTIAL, with_partial, without_partial
from ...program.columns import numbers
from ...program.function import Function
from ...program.mlir.modules import boundary_attributes, with_attributes
from .notes import NONE, Note
from .options import BINDS, WISHES, CarriedValue, ChosenOption, OptionChooser, Seen
from .user_options import UserOption
from .visits import Added, CompletedFunction, Held, Visit

_BESIDE = (ENTRIES, HALO, OFFSETS, PARTIAL)  # what an annotation says beside its sharding


_NONE = Held(NONE, -1, "", -1, -1)
_AttributeAndLabels = tuple[ir.Attribute, Mapping[str, ir.Attribute]]


class Body:
    """The ops of a function with the annotations that they see. ``bodies`` are those of all functions."""

    def __init__(
        self,
        function: Function,
        options: OptionChooser,
        by_user: Mapping[Any, UserOption],
        bodies: Mapping[str, Body],
    ) -> None:
        self.function, self.options, self.bodies = function, options, bodies
        nodes = range(len(function.ops))  # lists are read faster than columns
        self.operands = [tuple(function.operands[node]) for node in nodes]
        self.results = [tuple(function.results[node]) for node in nodes]
        self.sweeps = 0  # of this body
        ops = ((node, op.operation) for node, op in enumerate(function.ops)) if by_user else ()
        self.user_options = {node: by_user[op] for node, op in ops if op in by_user}
        self.notes = options.notes
        read = self.notes.read
        self.attributes: dict[tuple[Note, int], _AttributeAndLabels] = {}  # by an annotation and a rank
        self.of_results: dict[tuple[ir.Attribute, ...], ir.Attribute] = {}
        self.constraints = {*function.constraints}
        # The node that ends a region -> the op that carries values through it.
        self.around: dict[int, int] = {}
        for node, regions in function.regions.items():
            if self.carried(node):
                self.around |= {region.nodes[-1]: node for region in regions}
        self.defined: dict[int, Held] = {}  # value -> the annotation of its definition
        self.given: dict[int, Held] = {}  # value -> one that users see, where the op's definition has another
        self.for_users: dict[int, Held] = {}  # the result of a constraint -> its annotation
        self.used: dict[tuple[int, int], Held] = {}  # node and operand -> an annotation for this use alone
        self.wished: dict[int, list[Held]] = {}  # value -> the annotations for its users, the latest first
        arguments = dict(zip(function.arguments, boundary_attributes(function.op, "arg_attrs"), strict=True))
        for value, sharding in function.annotations.items():
            node = function.definer[value]
            if node < 0 and value not in arguments:
                continue  # an argument of a manual computation, whose body is local already
            attributes = arguments.get(value) if node < 0 else function.ops[node].attributes
            entries = _entries(attributes, len(sharding.dimensions))
            held = self.for_users if node in self.constraints else self.defined
            whole = with_partial(sharding, attributes, options.shardings)
            held[value] = Held(read(whole, entries), -1, function.name, *self.place(value))
        for node in reversed(function.constraints):
            (result,), (operand,) = function.results[node], function.operands[node]
            if result in self.for_users:
                self.wished.setdefault(operand, []).append(self.for_users[result])

    def sweep(self, direction: int, visits: list[Visit], number: int) -> None:
        """Visits the ops in order, or in reverse. A function takes part once in a sweep of a number, at the
        first call that is reached."""
        if self.sweeps >= number:
            return
        self.sweeps, function = number, self.function
        signatures, order = numbers(function.signature).tolist(), numbers(function.order).tolist()
        for node in order[::direction]:
            if node in self.constraints:
                continue
            if node in function.calls:
                callee = self.bodies[function.calls[node]]
                self.call(node, callee)
                callee.sweep(direction, visits, number)
                self.call(node, callee)
                continue
            node = self.around.get(node, node)
            if carried := self.carried(node):
                self.carry(node, carried, direction, visits)
                continue
            held, seen = self.seen(node)
            chosen = self.options.choose(signatures[node], seen, self.user_options.get(node))
            if chosen is not None:
                self.give(node, chosen, len(visits))
                visits.append(Visit(function.name, node, direction, held, chosen))

    def seen(self, node: int) -> tuple[tuple[tuple[int, Held], ...], tuple[tuple[int, Seen], ...]]:
        """The annotations that an op sees, by slot: with who gave them, and as the rules see them."""
        held: list[tuple[int, Held]] = []
        seen: list[tuple[int, Seen]] = []

        def add(slot: int, one: Held, strength: str, differs: bool = False) -> None:
            held.append((slot, one))
            seen.append((slot, Seen(one.note, strength, differs)))

        operands = self.operands[node]
        for i, value in enumerate(operands):
            if (node, i) in self.used:
                add(i, self.used[node, i], BINDS)
            elif value in self.for_users:
                add(i, self.for_users[value], BINDS)
            elif value in self.defined:
                add(i, self.given.get(value, self.defined[value]), WISHES)
        for i, value in enumerate(self.results[node], len(operands)):
            if value in self.defined:
                add(i, self.defined[value], BINDS)
            elif value in self.wished:
                first, *others = self.wished[value]
                differs = not all(self.notes.same(first.note, other.note) for other in others)
                add(i, first, WISHES, differs)
        return tuple(held), tuple(seen)

    def carried(self, node: int) -> tuple[CarriedValue, ...]:
        """The values that an op carries through its regions. Those in a manual computation are local."""
        function = self.function
        return () if node in function.entering else self.options.carried(function.signature[node])

    def carry(self, node: int, carried: Sequence[CarriedValue], direction: int, visits: list[Visit]) -> None:
        """Visits an op for each value that it carries through its regions."""
        for value in carried:
            outside = zip(*self.seen(node), strict=True)
            annotated = [each for each in outside if each[0][0] in (value.operand, value.result)]
            annotated_slots = {slot for (slot, _), _ in annotated}
            for slot, one in self.inside(node, value):
                if slot not in annotated_slots:
                    annotated_slots.add(slot)
                    annotated.append(((slot, one), (slot, Seen(one.note, WISHES))))
            held, seen = tuple(one for one, _ in annotated), tuple(one for _, one in annotated)
            chosen = self.options.pass_on(self.function.signature[node], value, seen) if seen else None
            if chosen is not None:
                self.give(node, chosen, len(visits))
                note, name = dict(chosen.notes)[value.result], self.function.name
                self.give_inside(node, value, Held(note, len(visits), name, node, value.result))
                visits.append(Visit(self.function.name, node, direction, held, chosen))

    def inside(self, node: int, value: CarriedValue) -> Iterator[tuple[int, Held]]:
        """The annotations that the regions of an op have of a value that it carries, by slot."""
        function, regions = self.function, self.function.regions[node]
        for region, i in value.returned:
            returned = function.operands[regions[region].nodes[-1]][i]
            if (held := self.of(returned)).note != NONE:
                yield value.result, held
        for region, i in value.arguments:
            argument = regions[region].arguments[i]
            if argument in self.wished:
                yield value.result if value.operand is None else value.operand, self.wished[argument][0]

    def give_inside(self, node: int, value: CarriedValue, new: Held) -> None:
        """Gives a value that an op carries its annotation in the regions of the op, too."""
        regions = self.function.regions[node]
        for region, i in value.arguments:
            self.defined[regions[region].arguments[i]] = new
        for region, i in value.returned:
            self.use(regions[region].nodes[-1], i, new)

    def use(self, node: int, operand: int, new: Held) -> None:
        """Gives an op an annotation of an operand, if it sees another one."""
        value = self.operands[node][operand]
        held = self.used.get((node, operand), self.of(value))
        if not self.notes.same(held.note, new.note):
            self.used[node, operand] = new
            self.wished.setdefault(value, []).insert(0, new)

    # ---- Calls ------------------------------------------------------------------------------------------

    def call(self, node: int, callee: Body) -> None:
        """A call and the function that it calls tell each other the annotations of operands and results. A
        function has one annotation for each: that of the first call, which others follow."""
        function, called = self.function, callee.function
        for i, (value, argument) in enumerate(zip(function.operands[node], called.arguments, strict=True)):
            here = self.used.get((node, i), self.of(value))
            if argument not in callee.defined and here.note != NONE:
                callee.defined[argument] = here
            elif argument not in callee.defined and argument in callee.wished:
                callee.defined[argument] = callee.wished[argument][0]
            if argument in callee.defined:
                self.use(node, i, callee.defined[argument])
        end = called.terminator
        for i, (returned, value) in enumerate(zip(called.operands[end], function.results[node], strict=True)):
            inside = callee.used.get((end, i), callee.of(returned))
            outside = self.defined.get(value, _NONE)
            if inside.note == NONE and outside.note != NONE:
                callee.use(end, i, outside)
            elif inside.note == NONE and value in self.wished:
                callee.wished.setdefault(returned, []).insert(0, self.wished[value][0])
            elif not self.notes.same(outside.note, inside.note):
                self.defined[value] = inside
                if outside.note != NONE:
                    self.given.setdefault(value, outside)

    def give(self, node: int, chosen: ChosenOption, visit: int) -> None:
        """Gives the slots of an op their annotations."""
        operands, results = self.operands[node], self.results[node]
        same = self.notes.same
        for slot, note in chosen.notes:
            new = Held(note, visit, self.function.name, node, slot)
            if slot >= len(operands):
                value = results[slot - len(operands)]
                held = self.defined.get(value, _NONE)
                if not same(held.note, note):
                    self.defined[value] = new
                    if held.note != NONE:
                        self.given.setdefault(value, held)
                continue
            value = operands[slot]
            held = self.used.get((node, slot), self.for_users.get(value, _NONE))
            if not same(held.note, note):
                self.used[node, slot] = new
                self.wished.setdefault(value, []).insert(0, new)

    def write(self) -> CompletedFunction:
        """Writes the annotations into the module. Returns what was written."""
        function, given = self.function, list[Added]()
        for value in function.arguments:
            if value not in self.defined and value in self.wished:
                self.defined[value] = self.wished[value][0]
        annotated = {*self.defined}
        arguments = [
            self.attribute(v, self.defined[v].note) if v in annotated else None for v in function.arguments
        ]
        _write_boundary(function.op, "arg_attrs", arguments)
        end = function.operands[function.terminator]
        _write_boundary(function.op, "res_attrs", [self.held(v) for v in end], keep=True)
        for node in numbers(function.order).tolist():
            op, results = function.ops[node], self.results[node]
            if node not in self.constraints and any(v in annotated for v in results):
                notes = (self.defined.get(v, _NONE).note for v in results)
                each = [
                    a for v, n in zip(results, notes, strict=True) if (a := self.attribute(v, n)) is not None
                ]
                if self.carried(node) or node in function.calls:
                    each = self.of_carried(results)
                if len(each) == len(results):
                    op.attributes["sdy.sharding"] = self.per_value(each)
                beside = dict[str, ir.Attribute]()
                if any(v in self.given for v in results):  # what stands beside the annotation its users see
                    beside = {label: op.attributes[label] for label in _BESIDE if label in op.attributes}
                    for label in beside:
                        del op.attributes[label]
                if len(results) == 1 and (held := self.defined.get(results[0], _NONE)) != _NONE:
                    _set(op, self.written(results[0], held.note)[1])
                given += self.reshard(op, node, beside)
            for i, value in enumerate(self.operands[node]):
                held = self.used.get((node, i), _NONE)
                if held.note != NONE and not self.notes.same(held.note, self.of(value).note):
                    self.constrain(op, i, value, held.note)
                    given.append(Added(node, node, held))
        given.sort(key=lambda added: added.before)
        own = {*function.arguments}
        values = ((v, held) for v, held in self.defined.items() if v in own or function.definer[v] >= 0)
        return CompletedFunction({self.place(v): held for v, held in values}, tuple(given))

    def of_carried(self, results: Sequence[int]) -> list[ir.Attribute]:
        """The annotations of the results of a call or an op that carries values; those that have none are
        open."""
        given = next(attribute for v in results if (attribute := self.held(v)) is not None)
        mesh: Any = sdy.TensorShardingAttr(given).mesh_or_ref
        each = list[ir.Attribute]()
        for value in results:
            dims = [sdy.DimensionShardingAttr.get([], is_closed=False)] * self.rank(value)
            each.append(self.held(value) or sdy.TensorShardingAttr.get(mesh, dims))
        return each

    def place(self, value: int) -> tuple[int, int]:
        """The node that has a value as a result, and which result; -1 and the number of an argument."""
        node = self.function.definer[value]
        of = self.function.arguments if node < 0 else self.results[node]
        return node, of.index(value)

    def of(self, value: int) -> Held:
        """The annotation that a value has for those who use it."""
        return self.for_users.get(value, self.given.get(value, self.defined.get(value, _NONE)))

    def held(self, value: int) -> ir.Attribute | None:
        return self.attribute(value, self.of(value).note)

    def rank(self, value: int) -> int:
        return len(self.options.classes.signatures.shapes[self.function.types[value]] or ())

    def per_value(self, each: Sequence[ir.Attribute]) -> ir.Attribute:
        """The shardings of the results of an op as one attribute."""
        key = tuple(each)
        if key not in self.of_results:
            self.of_results[key] = sdy.TensorShardingPerValueAttr.get(list(each))
        return self.of_results[key]

    def attribute(self, value: int, note: Note) -> ir.Attribute | None:
        """An annotation as an attribute; None where there is none."""
        return None if note == NONE else self.written(value, note)[0]

    def written(self, value: int, note: Note) -> _AttributeAndLabels:
        """An annotation as an attribute, and the attributes beside it."""
        key = note, self.rank(value)
        if key not in self.attributes:
            shardings = self.options.shardings
            sharding, beside = without_partial(self.notes.sharding(*key), shardings)
            self.attributes[key] = shardings.attribute(sharding, closed=True), beside
        return self.attributes[key]

    def reshard(self, op: Any, node: int, beside: Mapping[str, ir.Attribute]) -> list[Added]:
        """Puts constraints behind an op whose results have other annotations than it gives, with the
        attributes ``beside`` these."""
        added: list[Added] = []
        behind = self.end(node)
        for result, value in zip(op.results, self.results[node], strict=True):
            if value in self.given and not self.notes.same(self.given[value].note, self.defined[value].note):
                attribute, more = self.written(value, self.given[value].note)
                place = ir.InsertionPoint.after(op)
                constraint = sdy.ShardingConstraintOp(result, attribute, loc=op.location, ip=place)
                _set(constraint.operation, {INSERTED: ir.UnitAttr.get(), **beside, **more})
                result.replace_all_uses_except(constraint.result, constraint.operation)
                added.insert(0, Added(behind, node, self.given[value]))
        return added

    def end(self, node: int) -> int:
        """The first node behind an op and its regions."""
        parent = self.function.parent
        behind = node + 1
        while behind < len(parent) and parent[behind] >= node:
            behind += 1
        return behind

    def constrain(self, op: Any, operand: int, value: int, note: Note) -> None:
        """Puts a constraint between a value and one of its uses."""
        attribute, beside = self.written(value, note)
        given, place = op.operands[operand], ir.InsertionPoint(op)
        held = {"sharding": attribute, INSERTED: ir.UnitAttr.get(), **beside}
        constraint = ir.Operation.create(
            "sdy.sharding_constraint", [given.type], [given], held, loc=op.location, ip=place
        )
        op.operands[operand] = constraint.results[0]


def _set(op: Any, attributes: Mapping[str, ir.Attribute]) -> None:
    """Gives an op attributes."""
    for label, attribute in attributes.items():
        op.attributes[label] = attribute


def _entries(attributes: Any, rank: int) -> int:
    """Of how many dimensions an annotation of a tensor speaks."""
    limited = attributes is not None and ENTRIES in attributes
    return ir.IntegerAttr(attributes[ENTRIES]).value if limited else rank


def _write_boundary(
    op: Any, label: str, shardings: Sequence[ir.Attribute | None], keep: bool = False
) -> None:
    """Gives the arguments or results of a function their shardings; with ``keep``, only if they have none."""
    entries = boundary_attributes(op, label)
    changed = []
    for entry, attribute in zip(entries, shardings, strict=True):
        if attribute is None or (keep and "sdy.sharding" in entry):
            changed.append(entry)
        else:
            changed.append(with_attributes(entry, {"sdy.sharding": attribute}))
    if any(shardings):
        op.attributes[label] = ir.ArrayAttr.get(changed)
