"""A module as the agenda sees it: the graph, and the initial contents of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from ..collector import no_collections
from ..errors import ShardlogError
from ..program.boundaries import read_boundaries
from ..program.classes import Classes
from ..program.columns import among, numbers, without
from ..program.function import Function, Signatures, location
from ..program.meshes import Meshes, symbol
from ..program.mlir.modules import main_function, public, symbols
from ..program.shardings import Sharding, Shardings, read_mesh
from ..program.signature import DescribedParts, describe, looks_at
from ..rulebook.book import RuleBook
from .bodies import FunctionReader
from .graph.graph import Graph, build_graph
from .listing import listing_of
from .passes.policy import Policy
from .passes.splitting import leave_out, split_constants
from .passes.structure import Structure, prepare

_MOST_OPS = 50_000_000  # which take tens of gigabytes


@dataclass(frozen=True, eq=False)
class ImportedModule:
    """An imported module. ``cells``: place -> cell; ``initial``: cell -> its sharding, where it has one.

    ``unshared``: place -> a sharding whose dimensions are open and without axes, which the rest of its
    sharding group does not have.
    """

    module: ir.Module
    shardings: Shardings
    classes: Classes
    graph: Graph
    cells: npt.NDArray[np.int32]
    initial: dict[int, Sharding]
    unshared: dict[int, Sharding]
    grouped: tuple[tuple[int, ...], ...]  # the places of each sharding group, in program order


@no_collections()
def import_program(
    module: ir.Module,
    rules: RuleBook,
    *,
    modes: Sequence[str] = (),
    separate_groups: bool = False,
    units: bool = False,
    written: bytes = b"",
) -> ImportedModule:
    """Reads a module. ``modes``: facts about every op, see ``Options.modes``. ``separate_groups``: members of
    a sharding group may disagree, see ``groups.py``. ``units``: shardings keep axes of size 1. ``written``:
    the module as bytecode, see ``listing_of``.

    Raises ShardlogError for a module that cannot be propagated.
    """
    with module.context:
        reader = ModuleReader(
            module, rules, modes=modes, separate_groups=separate_groups, units=units, written=written
        )
        return reader.read()


class ModuleReader:
    """Reads a module step by step."""

    dynamic = False  # see Signatures
    all_names = False  # equal meshes keep their names; otherwise they are one

    def __init__(
        self,
        module: ir.Module,
        rules: RuleBook,
        *,
        modes: Sequence[str] = (),
        separate_groups: bool = False,
        units: bool = False,
        written: bytes = b"",
    ) -> None:
        self.module, self.rules, self.written = module, rules, written
        self.together = rules.groups if separate_groups else None
        around = looks_at(rules.looks_at)
        signatures = Signatures(around, self.dynamic)
        described_parts = DescribedParts()
        self.classes = Classes(
            signatures,
            rules.knowledge,
            lambda op, multiple: describe(op, multiple, around, described_parts),
            {mode: [()] for mode in modes},
        )
        self.shardings = self.read_meshes()
        self.shardings.units = units
        self.policy = Policy(rules, self.shardings.meshes, signatures.shapes)
        self.functions = self.read_functions(signatures)
        self.check_unknown(signatures)
        self.main = main_function({name: function.op for name, function in self.functions.items()})
        self.read_shardings()

    def check_unknown(self, signatures: Signatures) -> None:
        """Raises ShardlogError for an op that does not fit together, of those that MLIR does not check."""
        for number, op in enumerate(signatures.examples):
            if op is None or op.context.is_registered_operation(op.name):
                continue
            if wrong := self.rules.misfit(self.classes.facts(number)):
                hint = "give the op operands and results of shapes that go together"
                raise ShardlogError(f"{op.name}: {wrong}", where=location(op), hint=hint)

    def read_meshes(self) -> Shardings:
        meshes, names = Meshes([]), dict[str, int]()
        for name, op in symbols(self.module, "sdy.mesh").items():
            mesh = read_mesh(name, op.attributes["mesh"], location(op))
            devices = [(other.axes, other.device_ids) for other in meshes.meshes]
            repeated = (mesh.axes, mesh.device_ids) in devices
            first = devices.index((mesh.axes, mesh.device_ids)) if repeated else -1
            names[name] = first if repeated and not self.all_names else meshes.add(mesh, first)
        return Shardings(meshes, names)

    def read_functions(self, signatures: Signatures) -> dict[str, Function]:
        declared = symbols(self.module, "func.func")
        ops = {name: op for name, op in declared.items() if len(op.regions[0].blocks)}
        bodies = FunctionReader(listing_of(self.module, self.written), signatures)
        functions: dict[str, Function] = {}
        waiting = [name for name in reversed(ops) if public(ops[name])] + [main_function(ops)]
        while waiting:  # private functions that nothing calls are not part of the program
            name = waiting.pop()
            if name in functions:
                continue
            if name not in ops:
                hint = "define the function, or use stablehlo.custom_call"
                raise ShardlogError(
                    f"@{name} is called, but has no body", where=location(declared[name]), hint=hint
                )
            functions[name] = bodies.read(name)
            waiting.extend(functions[name].calls.values())
        return functions

    def read_shardings(self) -> None:
        """Reads the annotations in the order of the module, so that inlined meshes are numbered in that
        order."""
        for name, op in symbols(self.module, "func.func").items():
            if name not in self.functions:
                continue
            function, where = self.functions[name], location(op)
            read, attributes = self.shardings.read, function.attributes
            arguments = set(function.arguments)
            function.annotations = {v: read(a, where) for v, a in attributes.items() if v in arguments}
            function.result_annotations = [
                None if a is None else read(a, where) for a in function.result_attributes
            ]
            function.annotations.update(
                (v, read(a, where)) for v, a in attributes.items() if v not in arguments
            )
            self.read_boundaries(function)

    def read_boundaries(self, function: Function) -> None:
        read_boundaries(function, self.shardings, clean=True)

    def read(self) -> ImportedModule:
        functions, classes = self.functions, self.classes
        self.check_calls()
        structures = self.structures()
        graph = build_graph(functions, structures, self.main, self.roots(), classes)
        for function in functions.values():
            function.order = without(function.order, function.removed)
        groups = self.read_groups(graph)
        cells = np.arange(graph.places, dtype=np.int32)
        for members in groups:
            cells[list(members)] = min(members)
        initial, unshared = self.read_initial(graph, groups, cells)
        graph = self.keep_apart(graph, unshared)
        return ImportedModule(self.module, self.shardings, classes, graph, cells, initial, unshared, groups)

    def structures(self) -> dict[str, Structure]:
        """The structures of the functions, after the import passes."""
        self.annotate_calls()
        self.sink_edges()
        self.split()
        called, policy = self.called(), self.policy
        return prepare(
            self.functions, self.classes, self.together, called=called, main=self.main, policy=policy
        )

    def called(self) -> set[str]:
        """The functions that are called."""
        return {callee for function in self.functions.values() for callee in function.calls.values()}

    def roots(self) -> list[str]:
        """Main and the public functions that nothing calls, in the order in which Shardy walks through them.

        A split constant that is a call has a copy of the function.
        """
        called = {
            callee
            for function in self.functions.values()
            for node, callee in function.calls.items()
            if node not in function.originals and node not in function.removed
        }
        names = (name for name in reversed(symbols(self.module, "func.func")) if name in self.functions)
        return [n for n in names if n == self.main or (n not in called and public(self.functions[n].op))]

    def check_calls(self) -> None:
        """Raises ShardlogError for recursion, and for too many ops once calls are inlined."""
        sizes: dict[str, int] = {}  # of this check
        for root, function in self.functions.items():
            around = {root: iter(function.calls.values())}  # the functions that call one another
            while around:
                name, callees = next(reversed(around.items()))
                callee = next(callees, None)
                if callee is None:
                    del around[name]
                    calls = self.functions[name].calls.values()
                    sizes[name] = len(self.functions[name].ops) + sum(sizes[other] for other in calls)
                elif callee in around:
                    names = [*around]
                    cycle = " -> ".join(map(symbol, (*names[names.index(callee) :], callee)))
                    where, hint = location(self.functions[callee].op), "a loop is a stablehlo.while"
                    raise ShardlogError(f"recursive call: {cycle}", where=where, hint=hint)
                elif callee not in sizes:
                    around[callee] = iter(self.functions[callee].calls.values())
        largest = max(sizes, key=lambda name: sizes[name])
        if sizes[largest] > _MOST_OPS:
            message = f"{sizes[largest]:,} ops, counting each function once per call"
            hint = f"at most {_MOST_OPS:,} are supported; call functions less often, or in a stablehlo.while"
            raise ShardlogError(message, where=location(self.functions[largest].op), hint=hint)

    def annotate_calls(self) -> None:
        """A call without shardings gets the shardings of the function's results.
        ``rules/propagation/siblings.dl`` says which shardings siblings among them, and among the arguments
        of called functions, get."""
        for function in self.functions.values():
            for node, callee in function.calls.items():
                results, other = function.results[node], self.functions[callee]
                if not any(v in function.annotations for v in results):
                    by_result = dict(zip(results, other.result_annotations, strict=False))
                    function.annotations.update((v, s) for v, s in by_result.items() if s is not None)
                    self.policy.fill("call", function, results)
                self.policy.fill("call", other, other.arguments)

    def sink_edges(self) -> None:
        """The value of an edge of a function's data flow gets the sharding of the edge, instead of its own;
        an open one if the edge has none."""
        for function in self.functions.values():
            held = function.annotations
            for node, owner in function.flow_edges.items():
                if function.names[node] != "sdy.func_data_flow_edge":
                    continue
                own, of_value = held.pop(function.results[node][0], None), held.get(owner)
                if own is not None:
                    held[owner] = own
                elif of_value is not None:
                    held[owner] = Sharding.open(of_value.mesh, len(of_value.dimensions))

    def split(self) -> None:
        """Splits constants, see ``splitting.py``; the rules say which ops are constants."""
        classes, functions = self.classes, list(self.functions.values())
        signatures = range(len(classes.signatures.examples))
        kinds = ("constant", "keeps_constant", "expands_scalar", "computes_nothing")
        answers_of = [classes.of(s) for s in signatures]
        facts: dict[str, Any] = {k: [(s,) for s in signatures if getattr(answers_of[s], k)] for k in kinds}
        # Only calls and ops of the first three kinds can be constants: the others need not be told of.
        may_be, keeps = np.zeros((2, len(signatures)), bool)
        may_be[[s for k in kinds[:3] for (s,) in facts[k]]] = True
        keeps[[s for (s,) in facts["keeps_constant"]]] = True
        keeps[[s for k in ("constant", "expands_scalar") for (s,) in facts[k]]] = False
        number_of = {function.name: i for i, function in enumerate(functions)}
        facts["holds"] = sorted(
            {
                (number_of[f.name], s)
                for f in functions
                for s in {*among(numbers(f.signature))} - {f.signature[n] for n in f.calls}
            }
        )
        names = ("op_class", "operand", "calls", "inside")
        columns: dict[str, list[npt.NDArray[np.int64]]] = {name: [] for name in names}
        first_node = [0]
        for number, function in enumerate(functions):
            nodes = first_node[-1]
            signature, definer = numbers(function.signature), numbers(function.definer)
            may_be_constant = may_be[signature]
            may_be_constant[list(function.calls)] = True
            offsets, flat = numbers(function.operands.offsets), numbers(function.operands.values)
            users, makers = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), definer[flat]
            leave_out(may_be_constant, keeps[signature], users, makers)
            chosen, rows = np.nonzero(may_be_constant)[0], np.nonzero(may_be_constant[users])[0]
            index = rows - offsets[users[rows]]
            columns["op_class"].append(np.column_stack([chosen + nodes, signature[chosen]]))
            made_by = np.where(makers[rows] < 0, -1, makers[rows] + nodes)
            columns["operand"].append(np.column_stack([users[rows] + nodes, index, made_by]))
            calls = [(node + nodes, number_of[callee]) for node, callee in function.calls.items()]
            columns["calls"].append(np.asarray(calls, np.int64).reshape(-1, 2))
            inside = [(node + nodes, number) for node in function.calls]
            columns["inside"].append(np.asarray(inside, np.int64).reshape(-1, 2))
            first_node.append(nodes + len(function.ops))
        facts.update((name, np.concatenate(parts)) for name, parts in columns.items())
        answers = self.rules.constants(facts)
        ops = [answers[name][:, 0] for name in ("constant_expression", "scalar_expansion")]
        constants = np.sort(np.concatenate(ops)).astype(np.int32)
        scalar = [shape == () for shape in classes.signatures.shapes]
        bounds = np.searchsorted(constants, first_node)
        for function, start, end, nodes in zip(functions, bounds, bounds[1:], first_node, strict=False):
            split_constants(function, constants[start:end] - nodes, scalar)

    def read_groups(self, graph: Graph) -> tuple[tuple[int, ...], ...]:
        """Sharding groups: values that share a group id, directly or through other groups."""
        rows: list[tuple[int, int]] = []
        shapes = self.classes.signatures.shapes
        shape_of: dict[int, tuple[int, tuple[int, ...] | None]] = {}
        manual_of: dict[int, tuple[int, int]] = {}
        for instance in graph.instances:
            for value, group, _ in instance.function.groups:
                place = instance.place + int(instance.layout.place[value])
                shape = shapes[instance.function.types[value]]
                other = shape_of.setdefault(group, (place, shape))
                if other[1] != shape:
                    raise ShardlogError(
                        f"sharding group {group} has values of shapes {other[1]} and {shape}",
                        where=location(instance.function.op),
                        hint="all members of a sharding group must have the same shape",
                    )
                around = instance.function.manual_around(value)
                manual = (instance.number, around) if around >= 0 else (-1, -1)
                if manual_of.setdefault(group, manual) != manual:
                    raise ShardlogError(
                        f"sharding group {group} has values inside and outside of a manual computation",
                        where=location(instance.function.op),
                        hint="the members of a sharding group must be in the same manual computation",
                    )
                rows.append((place, group))
        return tuple(map(tuple, self.rules.groups(rows).values()))

    def read_initial(
        self, graph: Graph, groups: Sequence[tuple[int, ...]], cells: npt.NDArray[np.int32]
    ) -> tuple[dict[int, Sharding], dict[int, Sharding]]:
        """``initial`` and ``unshared`` of the program."""
        shared = {place for members in groups if len(members) > 1 for place in members}
        initial: dict[int, Sharding] = {}
        unshared: dict[int, Sharding] = {}
        for instance in graph.instances:
            function = instance.function
            for value, sharding in function.annotations.items():
                place = instance.place + int(instance.layout.place[value])
                cell = int(cells[place])
                if place in shared and sharding.dimensions_empty:
                    unshared[place] = sharding
                    continue
                if cell in initial:
                    self.check_group(initial[cell], sharding, function, value)
                initial[cell] = sharding
        main = graph.main.function
        for place, annotation in zip(graph.result_places, main.result_annotations, strict=True):
            if annotation is not None:
                initial[int(place)] = annotation
        return initial, unshared

    def keep_apart(self, graph: Graph, unshared: dict[int, Sharding]) -> Graph:
        """The graph in which turns know the ``unshared`` shardings of their slots, as
        ``rules/propagation/turn/members.dl`` says."""
        if not unshared:
            return graph
        own: dict[int, dict[str, list[tuple[Any, ...]]]] = {}  # item -> facts
        for row in np.flatnonzero(np.isin(graph.slots, list(unshared))).tolist():
            item = int(np.searchsorted(graph.slot_offsets, row, "right")) - 1
            slot = row - int(graph.slot_offsets[item])
            facts = self.shardings.facts(unshared[int(graph.slots[row])])
            for name in ("mesh", "fixed"):
                rows = own.setdefault(item, {}).setdefault(f"own_{name}", [])
                rows += [(slot, *fact) for fact in facts[name]]
        classes, retirement = graph.classes.copy(), graph.retirement
        later = None if retirement is None else retirement.later.copy()
        for item, facts_of_item in own.items():
            more = tuple((name, tuple(rows)) for name, rows in facts_of_item.items())
            for class_of in (classes,) if later is None else (classes, later):
                if class_of[item] >= 0:
                    class_of[item] = self.classes.with_facts(int(class_of[item]), more)
        if retirement is not None and later is not None:
            retirement = retirement._replace(later=later)
        return replace(graph, classes=classes, retirement=retirement)

    def check_group(self, one: Sharding, two: Sharding, function: Function, value: int) -> None:
        if one == two:
            return
        node = function.definer[value]
        raise ShardlogError(
            f"members of a sharding group have different shardings: {self.shardings.text(one)} "
            f"and {self.shardings.text(two)}",
            where=location(function.ops[function.source(node)] if node >= 0 else function.op),
            hint="give the members equal shardings, or leave each its own with --separate-groups",
        )
