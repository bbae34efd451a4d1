"""Propagation alone: the turns without what import and export do around them.

For modules that were imported already. Data flows where an edge stands and nowhere else; constants,
constraints and calls stay as they are, and no sharding is changed to suit the boundary of the module. This is
what a propagation pass of Shardy does by itself, and what the two are compared by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jaxlib.mlir import ir

from ...exporters.attributes import Context, ShardingAttributes
from ...exporters.functions import Signature, Version
from ...exporters.module import FunctionWriter
from ...exporters.op_rules import attach_rules
from ...exporters.shardings import FinalShardings, Shape
from ...importers.bodies import FunctionReader
from ...importers.listing import listing_of
from ...importers.passes.structure import Structure, prepare
from ...importers.program import ImportedModule, ModuleReader
from ...importers.sources.source import read_source
from ...importers.sources.text import parse_module
from ...program.boundaries import read_boundaries
from ...program.function import Function, Signatures
from ...program.mlir.modules import symbols
from ...program.shardings import Sharding, Shardings
from ...propagation.fixpoint import Fixpoint, propagate
from ...rulebook.book import RuleBook


def propagate_alone(
    source: Any,
    *,
    strategy: str,
    add_edges: bool = False,
    conservative: bool = False,
    keep_rules: bool = False,
) -> str:
    """The module of ``source`` after the stages of ``strategy``, as text.

    ``add_edges``: data-flow ops get the edges that they lack. Afterwards edges are gone: the op that they
    belong to has their sharding. ``conservative`` and ``keep_rules`` are those of ``run``, and so are the
    errors.
    """
    module = parse_module(read_source(source))
    modes = ("strict_shardy", *(("conservative",) if conservative else ()))
    book = RuleBook()
    with module.context, ir.Location.unknown():
        program = _Reader(module, book, add_edges=add_edges, modes=modes).read()
        fixpoint = propagate(program, book, strategy)
        contents, facts = fixpoint.contents, fixpoint.agenda.facts
        named = {**fixpoint.unchanged, **_with_names(program, fixpoint)}
        written = _AsTheyAre(
            program.shardings,
            contents,
            facts,
            lambda f, s, e: f,
            book.siblings,
            book.takes,
            book.crosses,
            named,
            {},
            closed=False,
        )
        for instance in program.graph.instances:
            instance.function.groups.clear()  # they stay
            version = Version(instance.function.name, instance, Signature((), ()), {})
            _Body(
                Context(program.graph, program.classes, written),
                version,
                instance.function.op,
                instance.function.ops,
            ).write()
        if keep_rules:
            attach_rules(module, book, modes)
    return str(module)


def _with_names(program: ImportedModule, fixpoint: Fixpoint) -> dict[int, Sharding]:
    """The shardings of places that were annotated with another name of a mesh: they keep it."""
    found = {}
    for place, cell in enumerate(program.cells.tolist()):
        given = program.initial.get(cell)
        if given is not None and program.shardings.meshes.same[given.mesh] != given.mesh:
            facts = fixpoint.agenda.facts(int(fixpoint.contents[place]))
            held = program.shardings.sharding(facts, len(given.dimensions))
            if held is not None:
                found[place] = replace(held, mesh=given.mesh)
    return found


class _Reader(ModuleReader):
    dynamic = True
    all_names = True

    def __init__(self, module: ir.Module, rules: RuleBook, *, add_edges: bool, modes: Sequence[str]) -> None:
        self.add_edges = add_edges
        super().__init__(module, rules, modes=modes, separate_groups=True)

    def read_meshes(self) -> Shardings:
        shardings = super().read_meshes()
        shardings.units = True
        return shardings

    def read_functions(self, signatures: Signatures) -> dict[str, Function]:
        declared = symbols(self.module, "func.func")
        bodies = FunctionReader(listing_of(self.module), signatures)
        functions = {n: bodies.read(n) for n, op in declared.items() if len(op.regions[0].blocks)}
        edges = (f.names[node] for f in functions.values() for node in f.flow_edges)
        if "sdy.func_data_flow_edge" not in edges:
            for function in functions.values():
                function.calls.clear()
        return functions

    def read_boundaries(self, function: Function) -> None:
        read_boundaries(function, self.shardings, clean=False)

    def structures(self) -> dict[str, Structure]:
        called, as_read = self.called(), not self.add_edges
        return prepare(
            self.functions, self.classes, self.together, called=called, edges_as_read=as_read, policy=None
        )

    def roots(self) -> list[str]:
        called = self.called()
        return [name for name in self.functions if name not in called]


class _AsTheyAre(FinalShardings):
    def fitted(self, sharding: Sharding | None, shape: Shape, *, entry: bool) -> Sharding | None:
        return sharding


class _Attributes(ShardingAttributes):
    def set_boundary(self) -> None:
        function = self.function
        self.set_values("arg_attrs", function.arguments, self.held(function.arguments))
        if self.entry:
            returned = function.operands[function.terminator]
            places, ranks = self.graph.result_places.tolist(), self.ranks(returned)
            found = [self.written.sharding(p, rank) for p, rank in zip(places, ranks, strict=True)]
            self.set_values("res_attrs", returned, found)

    def set_call(self, node: int) -> None:
        results = self.function.results[node]
        attribute = self.written.per_value(self.held(results), self.ranks(results))
        if attribute is not None:
            self.ops[node].attributes["sdy.sharding"] = attribute


class _Body(FunctionWriter):
    attributes = _Attributes

    def merge_constants(self) -> None:
        """Constants stay as they are."""
