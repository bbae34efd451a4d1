"""Walks over an annotated module and writes the program that each device runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...program.carried import without_partial
from ...program.mlir.modules import (
    boundary_attributes,
    children,
    entries_of,
    named_in,
    symbols,
)
from ...program.mlir.types import FunctionOp, Operation
from ...program.shardings import manual_axes
from ...program.signature import text_of
from ..choice.purposes import Computed, Use
from ..facts.annotated import Annotated
from ..facts.knowledge import Knowledge
from ..facts.reading import attribute_or_none
from ..facts.recipes import Recipe
from ..facts.recording import Decided
from ..finishing.indices import has_indices
from ..finishing.passes import COUNTED, Draft
from ..layouts import Layout
from ..plan import Reshard
from ..walk import Walk, purpose_of_reshard
from .building import OUTSIDE, Builder, Scope
from .local.local import LocalSite
from .local.lowerings import LOWERINGS
from .steps import carry_out


class WrittenEnds(NamedTuple):
    """The ends of a function: its arguments and their layouts, the values that it returns, and their
    layouts."""

    arguments: range
    takes: list[Layout]
    returned: list[int]
    gives: list[Layout]


class Writer(Walk):
    """Writes the device program of a module, by a plan.

    ``hand_on`` writes ops that pass values on (``local/flow.py``). ``channel`` is the last one in use.
    """

    def __init__(
        self,
        annotated: Annotated,
        decided: Decided,
        hand_on: Callable[[Writer, int, Knowledge], bool],
        channel: int = 0,
    ) -> None:
        traits = annotated.chooser.reader.traits
        builder = Builder(annotated.axes, annotated.form, channel, traits)
        plan, reading, bypasses = decided.plan, decided.reading, decided.bypasses
        super().__init__(annotated, plan, builder, reading, bypasses, decided.recipes)
        self.decided, self._hand_on = decided, hand_on
        self.copies: dict[int, Any] = {}  # of the ops of written functions
        self.kept: set[int] = set()  # the ops whose copies compute them, at home
        self.written: dict[str, Any] = {}
        self.ends: dict[str, WrittenEnds] = {}  # of the other functions
        self._reshards, self._repeated = iter(plan.reshards or ()), iter(decided.repeated)
        self._shardings: dict[Layout, Any] = {}
        self.boundary: tuple[list[Layout], list[Layout]] = [], []  # of the main function

    @property
    def scope(self) -> Scope:
        """The local values that exist now."""
        return self.builder.scope

    def at_home(self, value: int) -> Any:
        """The local value that was made at home, in any scope, or None."""
        local = self.locals.get(value)
        if local is None and (definer := self.kinds.definer(value)) in self.kept:
            first = self.kinds.results(definer)[0]
            local = self.locals[value] = self.copies[definer].results[value - first]
        return local

    def reshard(self, value: int, layout: Layout, use: Use | None, *, stale: bool) -> Reshard:
        """How a value gets to a layout, as the plan says."""
        decided = next(self._reshards)
        assert (decided.value, decided.goal) == (value, layout)
        return decided

    def repeated(self, reshard: Reshard) -> Computed:
        """How the op that makes a value is computed once more."""
        return next(self._repeated)

    def carry(self, held: Any, reshard: Reshard, use: Use | None, *, stale: bool) -> Any:
        """A local value after the steps of a reshard; ``stale``: of a value that was made this way before."""
        start, value = reshard.start, reshard.value
        assert start is not None
        if stale:  # or XLA merges both
            held = self.builder.barrier(held)
        with self.builder.serving(lambda: purpose_of_reshard(self.kinds, reshard, use)):
            return carry_out(self.builder, held, self.tensors[value].shape, start, reshard.steps)

    def run(self) -> Draft:
        """The program of each device, before any pass."""
        module = ir.Module.create(ir.Location.unknown(self.old.context))
        for name in self.old.operation.attributes:
            module.operation.attributes[name] = self.old.operation.attributes[name]
        self.module = module
        if self.form == "sdy-manual":
            for mesh in symbols(self.old, "sdy.mesh").values():
                mesh.operation.clone(ir.InsertionPoint(module.body))
        count = ir.IntegerAttr.get(self.builder.i32, self.axes.count)
        one = ir.IntegerAttr.get(self.builder.i32, 1)
        replicas = self.form == "replica"
        module.operation.attributes["mhlo.num_partitions"] = one if replicas else count
        module.operation.attributes["mhlo.num_replicas"] = count if replicas else one
        self._entry(self.functions[self.main])
        having = chain.from_iterable(map(self.kinds.numbers_having, OUTSIDE))
        annotated = not all(number in self.copies for number in having)
        examples = self.kinds.examples()
        loops = any(self.traits.lowering(op.name) == "loop" for op in examples)
        draft = Draft(module, self.builder.sent, self.traits, self.axes, self.form, annotated, loops)
        draft.indices = has_indices(examples)
        return draft.after(COUNTED)

    # ---- Functions --------------------------------------------------------------------------------------

    def _entry(self, func: FunctionOp) -> None:
        """Writes the main function, on whole tensors or on parts."""
        around = self.form == "sdy-manual" and self.axes.count > 1  # XLA accepts none for one device
        self.boundary = arguments, results = self.reading.boundary(func)
        type_ = func.type
        if around:
            arguments, results = self.entering_whole(arguments), self.entering_whole(results)
        else:
            ends = (type_.inputs, arguments), (type_.results, results)
            takes, gives = ([*map(self.local, *end)] for end in ends)
            type_ = ir.FunctionType.get(takes, gives)
        function, ops = self._opened(func)
        function.attributes["function_type"] = ir.TypeAttr.get(type_)
        self._name_boundary(func, function, self.boundary if around else None)
        builder, block = self.builder, function.regions[0].blocks[0]
        if around:
            whole = block.create_before(*type_.inputs, arg_locs=[func.location] * len(arguments))
            builder.scope = Scope(whole)
            builder.loc = func.location
            manual = self._manual(func, whole, arguments, results)
            block.append_to(manual.regions[0])
        builder.scope = Scope(block)
        self.arguments(ops, block, arguments)
        returned = self.block(ops, results)
        builder.loc = func.location
        if around:
            for i, (inside, outside) in enumerate(zip(results, self.boundary[1], strict=True)):
                if inside != outside:  # XLA slices it
                    returned[i] = builder.fenced(returned[i])
            builder.op("sdy.return", returned, [])
            builder.scope = Scope(whole)
            returned = list(manual.results)
        builder.op("func.return", returned, [])

    def function(self, func: FunctionOp) -> WrittenEnds:
        """Writes the device's version of a function of the module at the first request, and returns its
        ends."""
        name = text_of(func.attributes["sym_name"])
        if name not in self.ends:
            written, ops = self._opened(func)
            block, outer = written.regions[0].blocks[0], self.builder.scope
            self.enter(self.in_bodies.get(name, frozenset()))
            values = self.kinds.arguments(ops)
            arguments = self.settled(values, self.reading.boundary(func)[0])
            self.builder.scope = Scope(block)
            self.arguments(ops, block, arguments)
            returned = self.block(ops)
            self.builder.loc = func.location
            self.builder.op("func.return", returned, [])
            self.builder.scope = outer
            self.leave()
            type_ = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in returned])
            written.attributes["function_type"] = ir.TypeAttr.get(type_)
            ends = self.kinds.operands(ops[-1])
            results = [self.tensors[value].home for value in ends]
            self.ends[name] = WrittenEnds(values, arguments, ends, results)
        return self.ends[name]

    def _opened(self, func: Operation) -> tuple[Any, list[int]]:
        """A copy of a function, into which the program is written, and its ops."""
        name = text_of(func.attributes["sym_name"])
        if name in self.written:  # unchanged, for a region
            self.written[name].erase()
        self.written[name] = written = func.operation.clone(ir.InsertionPoint(self.module.body)).operation
        for label in list(written.attributes):
            if label not in ("sym_name", "sym_visibility", "function_type"):
                del written.attributes[label]
        (ops,) = self.open(self.kinds.listing.functions[name], written)
        return written, ops

    def open(self, number: int, copy: Any = None) -> list[list[int]]:
        """Registers the ops in each block of a copied op."""
        blocks = self.kinds.blocks(number)
        self.copies.update(zip(chain(*blocks), children(copy or self.copies[number]), strict=True))
        return blocks

    def _name_boundary(
        self, func: Operation, function: Any, whole: tuple[list[Layout], list[Layout]] | None
    ) -> None:
        """Copies the attributes of arguments and results. If the boundary has ``whole`` tensors, they get the
        shardings of the layouts; otherwise none."""
        manual = {"mhlo.sharding": ir.StringAttr.get("{manual}")}
        says = self._taken, self._sharding
        for number, label in enumerate(("arg_attrs", "res_attrs")):
            entries = list[Any]()
            for i, entry in enumerate(boundary_attributes(func, label)):
                given = attribute_or_none(entry, "sdy.sharding")
                written = None if given is None or whole is None else says[number](whole[number][i])
                if written is not None and written == given:
                    entries.append(entry)
                    continue
                kept = entries_of(entry, "sdy.sharding")
                kept |= {} if written is None else {"sdy.sharding": written}
                entries.append(ir.DictAttr.get(kept | manual if self.form == "manual" else kept))
            function.attributes[label] = ir.ArrayAttr.get(entries)

    def _manual(
        self, func: FunctionOp, block: ir.Block, arguments: list[Layout], results: list[Layout]
    ) -> Any:
        """A manual computation over all axes, from and to the function's whole tensors."""
        mesh = self.axes.mesh
        assert mesh is not None
        taken = list(map(self._taken, arguments))
        attributes = {
            "in_shardings": sdy.TensorShardingPerValueAttr.get(taken),
            "out_shardings": sdy.TensorShardingPerValueAttr.get(list(map(self._sharding, results))),
            "manual_axes": manual_axes(name for name, _ in mesh.axes),
        }
        operands = list(block.arguments)
        for i, sharding in enumerate(taken):
            # Shardy lets the result of a constraint be reduced, even if the constraint changes nothing.
            if sdy.TensorShardingAttr(sharding).unreduced_axes:
                constraint = {"sharding": sharding}
                operands[i] = self.builder.one(
                    "sdy.sharding_constraint", [operands[i]], operands[i].type, constraint
                )
        return self.builder.op("sdy.manual_computation", operands, func.type.results, attributes, regions=1)

    def _taken(self, layout: Layout) -> Any:
        """The attribute of the layout of an argument. What is partial by a reduction that sdy lacks, each
        device has whole: see ``OF_EQUALS``."""
        sharding, _ = without_partial(self.axes.sharding(layout), self.shardings)
        return self.shardings.attribute(sharding, closed=True)

    def _sharding(self, layout: Layout) -> Any:
        """The attribute of a layout."""
        if layout not in self._shardings:
            self._shardings[layout] = self.shardings.attribute(self.axes.sharding(layout), closed=True)
        return self._shardings[layout]

    # ---- Blocks -----------------------------------------------------------------------------------------

    def arguments(
        self,
        ops: Sequence[int],
        block: ir.Block,
        layouts: Sequence[Layout],
        some: Sequence[int] | None = None,
    ) -> None:
        """Turns the arguments of a copy of the block with these ops, or ``some`` of them, into parts."""
        values, locals_ = self.kinds.arguments(ops), self.parts(block, layouts)
        for n in range(len(locals_)) if some is None else some:
            self.define(values[n], layouts[n], locals_[n], kept=True)

    def parts(self, block: ir.Block, layouts: Sequence[Layout]) -> list[Any]:
        """The arguments of a copy of a block, turned into parts."""
        for local, layout in zip(block.arguments, layouts, strict=True):
            local.set_type(self.local(local.type, layout))
        return list(block.arguments)

    def block(
        self,
        ops: Sequence[int],
        results: Sequence[Layout] | None = None,
        to: Sequence[Any] = (),
        slots: Sequence[int] | None = None,
    ) -> list[Any]:
        """Writes the ops of a block, and returns the operands of its terminator in the given layouts, or at
        home. For a branch or the body of a loop they become results of the op or values of the next iteration
        (``to``), for some ``slots``. Ops without a device version are removed from the copy of the block."""
        scope, copies, gone = self.builder.scope, self.copies, list[Any]()
        *computed, last = ops
        for number in computed:
            scope.move(copies[number])
            if not self.op(number):
                gone.append(copies[number])
        gone.append(copies[last])
        scope.move(gone[-1])
        self.builder.loc = self.kinds.ops[last].location
        if results is None:
            returned = [self.get(value, self.tensors[value].home) for value in self.kinds.operands(last)]
        else:
            returned = self.entering(last, results, to, chosen=bool(to), slots=slots)
        for copy in reversed(gone):
            copy.erase()
        scope.move(None)
        return returned

    def note(self, use: Use, value: int, layout: Layout, *, start: Layout | None = None) -> None:
        """Does nothing: only the recorder takes notes."""

    # ---- Ops --------------------------------------------------------------------------------------------

    def op(self, number: int) -> bool:
        """Writes an op. Returns whether that is the copy of it."""
        how = self.decided.ops[number]
        if isinstance(how, Recipe):
            return self._take(number, how)
        self.clock += 1
        if how is None:  # its users skip it
            return False
        op = self.kinds.ops[number]
        self.builder.loc = op.location
        return self._hand_on(self, number, how)

    def computed(self, number: int) -> bool:
        """Writes an op that is computed. Returns whether that is the copy of it."""
        return self._take(number, self.decided.within[number])

    def _take(self, number: int, recipe: Recipe) -> bool:
        """Writes an op by a recipe. Returns whether that is the copy of it."""
        self.clock += 1
        computed = recipe.computed
        values = self._needed(number, recipe) if recipe.needed else []
        if computed.knowledge.lowering == "shift":
            self.builder.loc = self.kinds.ops[number].location
            values.append(self.bypasses.filling(number, self.builder.copy_of, self.get))
        if recipe.kept:
            copy = self.copies[number]
            recipe.write(copy, values)
            if recipe.at_home:
                self.kept.add(number)
                self.tensors.update(zip(self.kinds.results(number), recipe.tensors, strict=True))
                return True
            self.builder.scope.pass_by(copy)
            self.builder.loc = copy.location
            results: Sequence[Any] = list(copy.results)
        else:
            op = self.kinds.ops[number]
            if computed.knowledge.names_functions or len(op.regions):
                self.keep_named(op)
            results = self.lower(op, computed, values)
        self.give(number, recipe, results, len(recipe.takes))
        return recipe.kept

    def _needed(self, number: int, recipe: Recipe) -> list[Any]:
        """The operands that an op needs and its copy lacks."""
        values, scope = list[Any](), self.builder.scope
        operands = self.decided.reads.get(number) or self.kinds.operands(number)
        for slot, layout, home in recipe.needed:
            value = operands[slot]
            local = self.at_home(value) if home else None
            if local is None:
                local = scope.find((value, layout))
                if local is None or self.plan.again:
                    self.builder.loc = self.kinds.ops[number].location
                    local = self.get(value, layout, Use(number, slot, value, recipe.computed))
            values.append(local)
        return values

    def lower(self, op: Operation, computed: Computed, values: list[Any]) -> Sequence[Any]:
        """The results of an op by its lowering, from operands in the layouts that it needs."""
        builder, knowledge = self.builder, computed.knowledge
        builder.loc = op.location
        site = LocalSite(builder, op, computed, self.captured)
        with site.sends(len(op.operands)):
            results = LOWERINGS[knowledge.lowering](site, values)
        if knowledge.looks_up:
            builder.looked_up.update(results)
        return results

    def keep_named(self, op: Operation) -> None:
        """Keeps functions that an op names or its regions call, such as comparisons, unchanged."""
        for name in sorted(named_in(op)):
            if name in self.functions and name not in self.written:
                func = self.functions[name].operation
                self.written[name] = written = func.clone(ir.InsertionPoint(self.module.body))
                for label in ("arg_attrs", "res_attrs"):
                    entries = [
                        ir.DictAttr.get(entries_of(e, *OUTSIDE)) for e in boundary_attributes(written, label)
                    ]
                    if label in written.attributes:
                        written.attributes[label] = ir.ArrayAttr.get(entries)
                self.keep_named(func)
