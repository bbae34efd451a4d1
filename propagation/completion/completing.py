"""Completion of a module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxlib.mlir import ir

from ...importers.program import ModuleReader
from ...program.carried import INSERTED, SPELLING
from ...program.mlir.modules import operations_in
from ...program.signature import text_of
from ...rulebook.book import RuleBook
from .body import Body
from .options import OptionChooser
from .traversals import TRAVERSALS
from .user_options import read_user_options
from .visits import CompletedFunction, Visit

_PARTIAL_SPELLINGS = ("rfc", "mesh19")  # of the dialects whose annotations say partial sums


@dataclass(frozen=True)
class Completion:
    """The visits of a completed module, in order, and what was written into each function."""

    visits: tuple[Visit, ...]
    given: Mapping[str, CompletedFunction]


def complete(
    module: ir.Module,
    book: RuleBook,
    traversal: str = "backward-forward",
    user_options: Sequence[str] = (),
    data: bytes = b"",
) -> Completion:
    """Completes the annotations of a module, in place.

    ``user_options`` are sharding options that ops have whatever annotations they see. ``data`` is the text
    that names values. Returns the visits that gave annotations, and the shardings that were written. Raises
    ShardlogError as ``import_program`` and ``read_user_options`` do. The method is that of the device mesh
    RFC and of LLVM's ``sharding-propagation``.
    """
    with module.context, ir.Location.unknown():
        if not data or INSERTED.encode() in data:  # of a module that was completed before
            for op in operations_in(module):
                if INSERTED in op.attributes:
                    del op.attributes[INSERTED]
        reader = ModuleReader(module, book, units=True)
        options = OptionChooser(reader, book, reader.shardings.has_unreduced or _says_partial(module))
        by_op = read_user_options(module, user_options, reader.shardings, data)
        visits, bodies = list[Visit](), dict[str, Body]()
        for function in reader.functions.values():
            bodies[function.name] = Body(function, options, by_op, bodies)
        reader.check_calls()
        called = reader.called()
        for number, direction in enumerate(TRAVERSALS[traversal], 1):
            for name, body in bodies.items():
                if name not in called:
                    body.sweep(direction, visits, number)
        return Completion(tuple(visits), {name: body.write() for name, body in bodies.items()})


def _says_partial(module: ir.Module) -> bool:
    """Whether the dialect of a module says partial sums."""
    spelling = module.operation.attributes
    return SPELLING in spelling and text_of(spelling[SPELLING]) in _PARTIAL_SPELLINGS
