"""Questions to a set of relations: the body of a rule, without its head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..language.diagnostics import Reporter
from ..language.parser import parse
from ..language.sources import Sources
from ..language.syntax import Atom, Comparison, Constant, Module, Variable
from ..plan.cache import Request
from ..plan.querying import QUERY, compile_query
from .program import LoadedProgram


@dataclass(frozen=True)
class Mentions:
    """The relations in a query, and the symbols that it wants in their columns, as (relation, column,
    symbol).

    ``firsts``: of relations whose first column is a constant wherever they stand, these constants.
    """

    relations: frozenset[str]
    symbols: tuple[tuple[str, int, str], ...]
    firsts: Mapping[str, frozenset[str | int]]


def load_query(body: str, declarations: str) -> LoadedProgram:
    """A program whose output ``answer`` holds the solutions of ``body``, see ``compile_query``.
    ``declarations`` declare the relations that the body may use. Raises DatalogError."""
    request = Request((), texts={"relations": declarations}, files=False)
    return LoadedProgram(compile_query(request, body, (), (), ())[0])


def mentions(body: str) -> Mentions:
    """The relations and symbols in a query without errors."""
    module, sources = Module(), Sources()
    text = f"answer() :-\n{body.strip().removesuffix('.')}.\n"
    parse(text, sources.add(QUERY, text), module, Reporter(sources), lambda *_: None)
    nodes = [node for clause in module.clauses for node in _nodes(clause.body)]
    equal: dict[str, list[str]] = {}  # symbols that variables equal
    for node in nodes:
        if isinstance(node, Comparison) and node.operator == "=":
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(one, Variable) and isinstance(other, Constant) and other.kind == "symbol":
                    equal.setdefault(one.name, []).append(str(other.value))
    atoms = [node for node in nodes if isinstance(node, Atom)]
    wanted = dict.fromkeys(
        (atom.name, column, symbol)
        for atom in atoms
        for column, term in enumerate(atom.args)
        for symbol in _symbols(term, equal)
    )
    firsts: dict[str, set[str | int] | None] = {}
    for atom in atoms:
        first, so_far = atom.args[0] if atom.args else None, firsts.setdefault(atom.name, set())
        if not isinstance(first, Constant) or not isinstance(first.value, (str, int)):
            firsts[atom.name] = None
        elif so_far is not None:
            so_far.add(first.value)
    constants = {name: frozenset(symbols) for name, symbols in firsts.items() if symbols is not None}
    return Mentions(frozenset(atom.name for atom in atoms), tuple(wanted), constants)


def _symbols(term: Any, equal: dict[str, list[str]]) -> list[str]:
    if isinstance(term, Variable):
        return equal.get(term.name, [])
    return [str(term.value)] if isinstance(term, Constant) and term.kind == "symbol" else []


def _nodes(node: Any) -> Iterator[Any]:
    """The nodes of a syntax tree."""
    if isinstance(node, tuple):
        yield node
        for part in node:
            yield from _nodes(part)
