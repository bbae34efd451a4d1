"""Ops that rules in more than one file are about: found when rules are loaded, with both places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from ..engine.analysis.strata import clause_uses
from ..engine.language.syntax import Atom, Clause, Comparison, Constant, Variable
from .naming import Naming
from .notations.einsum import SUFFIXES
from .written import RuleTexts, read

_RULE = ("factor", "kind", "blocked", "maps", "edge")  # the relations of op rules: how shardings pass

FileLine = tuple[str, int]  # file and line


def overlaps(written: RuleTexts, builtin: Sequence[Path], naming: Naming) -> Iterator[str]:
    """A message for every op that two files of rules have a rule for, or one of them and the files
    ``builtin``.

    Lines of einsum notation win over Datalog, and lines of later files over others. Rules in Datalog add
    up.
    """
    shipped = _builtin(tuple(builtin))
    ruling = _ruling([*shipped.module.clauses, *written.module.clauses])
    places: dict[str, FileLine] = {}
    for mentions in _mentions(shipped, ruling, naming).values():
        places = {**mentions, **places}
    for mentions in _mentions(written, ruling, naming).values():
        for name, place in mentions.items():
            if name in places:
                yield _message(name, place, places[name])
            places[name] = place


def _message(name: str, place: FileLine, other: FileLine) -> str:
    line, over = (Path(file).suffix in SUFFIXES for file, _ in (place, other))
    if line:
        which = "the former is used where its shapes fit"
    else:
        which = "the latter is used where its shapes fit" if over else "what both say holds"
    return f"{_shown(place)} and {_shown(other)} both have a rule for {name}: {which}"


def _shown(place: FileLine) -> str:
    """``file:line``; built-in files are named from the folder of the package."""
    root = f"{Path(__file__).parents[1]}/"
    return f"{place[0].removeprefix(root) if place[0].startswith(f'{root}rules/') else place[0]}:{place[1]}"


@cache
def _builtin(files: tuple[Path, ...]) -> RuleTexts:
    return read({str(file): file.read_text(encoding="utf-8") for file in files})


def _ruling(clauses: Iterable[Clause]) -> frozenset[str]:
    """The relations that a rule of an op may follow from."""
    used: dict[str, set[str]] = {}
    for clause in clauses:
        positive = {use.relation for use in clause_uses(clause) if use.strict != "negation"}
        used.setdefault(clause.head.name, set()).update(positive)
    relations, waiting = set(_RULE), list(_RULE)
    while waiting:
        new = used.get(waiting.pop(), set()) - relations
        relations |= new
        waiting += new
    return frozenset(relations)


def _mentions(written: RuleTexts, ruling: frozenset[str], naming: Naming) -> dict[str, dict[str, FileLine]]:
    """The ops that clauses for ``ruling`` relations name first, by file."""
    by_file: dict[str, dict[str, FileLine]] = {}
    for clause in written.module.clauses:
        for name in _named(clause, naming) if clause.head.name in ruling else ():
            place = written.sources.locate(clause.text.start)
            by_file.setdefault(place.file, {}).setdefault(name, (place.file, place.line))
    return by_file


def _named(clause: Clause, naming: Naming) -> Iterator[str]:
    """The ops that a clause names: a fact of a family, or a rule in its body."""
    if not clause.body:
        if clause.head.name in naming.names and isinstance(clause.head.args[0], Constant):
            yield f"{naming.names[clause.head.name]}{clause.head.args[0].value}"
        return
    variables: dict[str, str] = {}
    for literal in clause.body:
        if isinstance(literal, Atom) and literal.name in naming.calls and len(literal.args) == 2:
            name, prefix = literal.args[1], naming.calls[literal.name]
            if isinstance(name, Constant):
                if name.value != "stablehlo.custom_call":
                    yield f"{prefix}{name.value}"
            elif isinstance(name, Variable):
                variables[name.name] = prefix
    for literal in clause.body:
        if isinstance(literal, Comparison) and literal.operator == "=":
            for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
                if isinstance(side, Variable) and side.name in variables and isinstance(other, Constant):
                    yield f"{variables[side.name]}{other.value}"
