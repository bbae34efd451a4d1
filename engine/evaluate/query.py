"""Questions to a set of relations: the body of a rule, without its head."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ..analysis.scopes import resolve
from ..analysis.types import Inference, declared_types
from ..language.diagnostics import DatalogError, Reporter
from ..language.parser import parse
from ..language.sources import Sources
from ..language.syntax import Atom, Comparison, Constant, Module, Variable
from .program import Program, load

_T = TypeVar("_T")
_NAME = "query"


@dataclass(frozen=True)
class Mentions:
    """The relations in a query, and the symbols that it wants in their columns, as (relation, column,
    symbol)."""

    relations: frozenset[str]
    symbols: tuple[tuple[str, int, str], ...]


def load_query(body: str, declarations: str) -> Program:
    """A program whose output ``answer`` holds the solutions of ``body``, a column for each of its variables.

    Where the body is a disjunction these are the variables that all alternatives have. ``declarations``
    declare the relations that the body may use. Raises DatalogError; its places are in the body, in a file
    called "query".
    """
    body = body.strip().removesuffix(".").rstrip()
    _in_query(lambda: _load("answer()", ".decl answer()", body, declarations))
    kinds = _variables(body, declarations)
    head = f"answer({', '.join(kinds)})"
    columns = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
    return _in_query(lambda: _load(head, f".decl answer({columns})", body, declarations))


def _load(head: str, declaration: str, body: str, declarations: str) -> Program:
    texts = {"relations": f"{declarations}\n{declaration}\n.output answer\n", _NAME: f"{head} :-\n{body}.\n"}
    return load(texts=texts, files=False)


def mentions(body: str) -> Mentions:
    """The relations and symbols in a query without errors."""
    module, sources = Module(), Sources()
    text = f"answer() :-\n{body.strip().removesuffix('.')}.\n"
    parse(text, sources.add(_NAME, text), module, Reporter(sources), lambda *_: None)
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
    return Mentions(frozenset(atom.name for atom in atoms), tuple(wanted))


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


def _in_query(call: Callable[[], _T]) -> _T:
    """Errors have the lines of the query, which stands below a head."""
    try:
        return call()
    except DatalogError as error:
        raise DatalogError(
            (replace(d, line=max(1, d.line - 1)) if d.file == _NAME else d for d in error.diagnostics),
            error.more,
        ) from None


def _variables(body: str, declarations: str) -> dict[str, str]:
    """The variables of a body that has no errors, but for those of aggregates alone, with their kinds."""
    sources, module = Sources(), Module()
    reporter = Reporter(sources)
    for name, text in (("relations", declarations), (_NAME, f"answer() :-\n{body}.\n")):
        parse(text, sources.add(name, text), module, reporter, lambda *_: None)
    types = declared_types(module.types, reporter)
    columns = {r.name: tuple(types.kinds[c.type_name] for c in r.columns) for r in module.relations}
    inference = Inference(types, {**columns, "answer": ()}, reporter)
    found = [inference.clause(resolve(c)) for c in module.clauses if c.head.name == "answer"]
    shared = set.intersection(*map(set, found))
    return {name: kind for name, kind in found[0].items() if name in shared and "@" not in name}
