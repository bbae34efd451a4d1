"""The questions of editors about a place in a file: where a name is declared and used, its meaning,
proposals for the place, and the edits that rename it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ...engine.language.lexer import DIRECTIVES, KEYWORDS
from ...errors import ShardlogError
from ...rulebook.notations.einsum import SUFFIXES
from ...rulebook.shipped import RULES
from .factors import KINDS, factors_of
from .names import Declaration, Name, RuleFileNames, is_name
from .programs import MODULES, Library
from .scopes import Scopes

_PRIMITIVES = ("number", "symbol", "unsigned", "float")
_LOCAL = frozenset(["variable", "column", "factor"])  # names of one statement
_SENTENCES = 6  # of a relation that are shown
_TYPE_COMES = re.compile(r"(?::|<:|=|\|)\s*\w*\Z")
_QUALIFIED = re.compile(r"([\w?]+(?:\.[\w?]+)*)\.[\w?]*\Z")
_DIRECTIVE_COMES = re.compile(r"(?:^|\s)\.\w*\Z")


@dataclass(frozen=True)
class Occurrence:
    """A name in a file."""

    path: Path
    name: Name


@dataclass(frozen=True)
class Proposal:
    """A proposal for a place: a word, its kind ("relation", "variable", "type", "keyword" or "factor"), and
    its meaning."""

    word: str
    kind: str
    detail: str = ""
    comment: str = ""


@lru_cache(maxsize=64)
def _factors(text: str) -> RuleFileNames:
    return factors_of(text)


def names_in(library: Library, path: Path) -> RuleFileNames:
    """The names in a file, whatever its notation."""
    if path.suffix in MODULES:
        return RuleFileNames()
    if path.suffix in SUFFIXES:
        return _factors(library.text(path) or "")
    return library.names(path)


def spots(library: Library, path: Path, offset: int) -> list[Occurrence]:
    """All places of the name at a place, where it is declared first."""
    name = names_in(library, path).at(offset)
    if name is None or name.kind == "file":
        return []
    files = [path] if name.kind in _LOCAL else _files(library, path)
    scopes = _scopes(library, files)
    occurrences = [
        Occurrence(file, other)
        for file in files
        for other in names_in(library, file).in_order
        if (other.kind, other.text, other.scope) == (name.kind, name.text, name.scope)
        and (name.kind in _LOCAL or scopes.same(name, other))
    ]
    return sorted(occurrences, key=lambda spot: not spot.name.declares)


def _files(library: Library, path: Path) -> Iterable[Path]:
    return dict.fromkeys((path, *library.files(path)))


def _scopes(library: Library, files: Iterable[Path]) -> Scopes:
    return Scopes(names_in(library, file) for file in files)


def definitions(library: Library, path: Path, offset: int) -> list[Occurrence]:
    """Where the name at a place is declared; of a variable, its first place; the file that is included."""
    name = names_in(library, path).at(offset)
    if name is not None and name.kind == "file":
        target = library.includes(path).get(name.text)
        return [Occurrence(target, Name("file", name.text, 0, 0))] if target is not None else []
    occurrences = spots(library, path, offset)
    if name is not None and name.kind == "variable":
        return sorted(occurrences, key=lambda spot: spot.name.start)[:1]
    return [spot for spot in occurrences if spot.name.declares]


def _declarations(library: Library, path: Path) -> Iterator[Declaration]:
    for file in _files(library, path):
        yield from names_in(library, file).declarations


def hover(library: Library, path: Path, offset: int) -> tuple[Name, str] | None:
    """The name at a place, and its description as Markdown."""
    name = names_in(library, path).at(offset)
    if name is None:
        return None
    if name.kind == "variable":
        return name, _about_variable(library, path, name)
    if name.kind == "factor":
        return name, _about_factor(library, path, name)
    scopes = _scopes(library, _files(library, path))

    def is_meant(other: Name) -> bool:
        return (other.kind, other.text) == (name.kind, name.text) and scopes.same(name, other)

    declared = [d for d in _declarations(library, path) if is_meant(d.name)]
    parts = [f"```datalog\n{d.text}\n```" + (f"\n{d.comment}" if d.comment else "") for d in declared[:3]]
    if name.kind == "relation":
        sentences = (
            sentence
            for file in _files(library, path)
            for head, sentence in names_in(library, file).sentences
            if is_meant(head)
        )
        parts.append("\n".join(f"- {sentence}" for sentence in list(dict.fromkeys(sentences))[:_SENTENCES]))
    text = "\n\n".join(filter(None, parts))
    return (name, text) if text else None


def _about_variable(library: Library, path: Path, name: Name) -> str:
    """The types of the columns that a variable stands for."""
    scopes = _scopes(library, _files(library, path))
    columns = {
        (d.name.within, d.name.text): d.columns
        for d in _declarations(library, path)
        if d.name.kind == "relation"
    }
    types: dict[str, None] = {}
    for spot in names_in(library, path).in_order:
        if (spot.kind, spot.text, spot.scope) == (name.kind, name.text, name.scope) and spot.argument:
            relation, i = spot.argument
            declared = columns.get((scopes.home(relation) or "", relation.text), ())
            if i < len(declared):
                types[declared[i][1]] = None
    comments = {d.name.text: d.comment for d in _declarations(library, path) if d.name.kind == "type"}
    lines = [f"```datalog\n{name.text}: {' | '.join(types) or '?'}\n```"]
    lines += [f"`{kind}`: {comments[kind]}" for kind in types if comments.get(kind)]
    return "\n\n".join(lines)


def _about_factor(library: Library, path: Path, name: Name) -> str:
    """The kind and the size that its line gives to a factor."""
    start, end = names_in(library, path).statements[name.scope]
    line = (library.text(path) or "")[start:end]
    word = re.escape(name.text)
    kinds = [kind for kind in KINDS if re.search(rf"\b{kind}\s*=\s*\{{[^}}]*\b{word}\b[^}}]*\}}", line)]
    size = re.search(rf"\{{[^}}]*\b{word}\s*=\s*(\d+)", line)
    says = ", ".join(kinds or ["pass_through"]) + (f", size {size[1]}" if size else "")
    return f"`{name.text}`: {says}"


def renamed(library: Library, path: Path, offset: int, to: str) -> list[Occurrence]:
    """The places that change when the name at a place becomes another. Raises ShardlogError where it may
    not."""
    occurrences = spots(library, path, offset)
    if not occurrences:
        raise ShardlogError("there is no name here to rename", where=str(path))
    name = occurrences[0].name
    fits = re.fullmatch(r"[A-Za-z]\w*", to) if name.kind == "factor" else is_name(to)
    if name.kind == "op" or not fits:
        hint = "letters, digits and _, and no word that Datalog has for itself"
        raise ShardlogError(f"`{to}` cannot be the name of a {name.kind}", where=str(path), hint=hint)
    if len([spot for spot in occurrences if spot.name.declares]) > 1 and name.kind not in _LOCAL:
        raise ShardlogError(f"`{name.text}` is declared in several places", where=str(path))
    shipped = next((spot.path for spot in occurrences if spot.path.is_relative_to(RULES.resolve())), None)
    if shipped is not None and not path.is_relative_to(RULES.resolve()):
        raise ShardlogError(
            f"`{name.text}` is a name of the rules that come with shardlog", where=str(shipped)
        )
    scopes = _scopes(library, _files(library, path))
    home, reached = (
        scopes.home(name),
        {s for spot in occurrences for s in scopes.visible(*_stands(spot.name))},
    )
    for file in {spot.path: None for spot in occurrences}:
        others = (
            other
            for other in names_in(library, file).in_order
            if (other.kind, other.scope, other.text) == (name.kind, name.scope, to)
        )
        # Where either could be taken for the other.
        if any(scopes.home(n) in (None, *reached) or home in scopes.visible(*_stands(n)) for n in others):
            raise ShardlogError(f"there is a {name.kind} `{to}` already", where=str(file))
    return occurrences


def _stands(name: Name) -> tuple[str, tuple[str, ...]]:
    return name.within, name.path


def proposals(library: Library, path: Path, offset: int) -> list[Proposal]:
    """The proposals for a place."""
    if path.suffix in MODULES:
        return []
    names = names_in(library, path)
    text = library.text(path) or ""
    scope = next((i for i, (start, end) in enumerate(names.statements) if start <= offset <= end), None)
    start = names.statements[scope][0] if scope is not None else offset
    if path.suffix in SUFFIXES:
        local = sorted(
            {name.text for name in names.in_order if name.kind == "factor" and name.scope == scope}
        )
        return [*(Proposal(word, "factor") for word in local), *(Proposal(kind, "keyword") for kind in KINDS)]
    before = text[min(start, offset) : offset]
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    if _DIRECTIVE_COMES.search(line):
        return [Proposal(f".{name}", "keyword") for name in DIRECTIVES]
    directive = re.match(r"\.(\w+)", before)
    instances = _QUALIFIED.search(before)
    qualified = tuple(instances[1].split(".")) if instances else ()
    visible = _scopes(library, _files(library, path)).visible(names.within(offset), qualified)
    declared = [d for d in _declarations(library, path) if d.name.within in visible]
    if qualified and visible:
        return [*_proposed(declared, "relation"), *_proposed(declared, "type")]
    if directive is not None and directive[1] in ("decl", "type", "functor", "comp", "init"):
        comes = _TYPE_COMES.search(before)
        return [*_proposed(declared, "type"), *(Proposal(p, "type") for p in _PRIMITIVES)] if comes else []
    if directive is not None:
        return [*_proposed(declared, "relation")]
    local = sorted(
        {n.text for n in names.in_order if n.kind == "variable" and n.scope == scope and n.end != offset}
    )
    words = sorted(word for word in KEYWORDS if word.isidentifier() and word != "_")
    return [
        *(Proposal(word, "variable") for word in local),
        *_proposed(declared, "relation"),
        *(Proposal(word, "keyword") for word in words),
    ]


def _proposed(declared: Iterable[Declaration], kind: str) -> Iterator[Proposal]:
    seen: set[str] = set()
    for declaration in declared:
        if declaration.name.kind == kind and declaration.name.text not in seen:
            seen.add(declaration.name.text)
            yield Proposal(declaration.name.text, kind, declaration.text, declaration.comment)
