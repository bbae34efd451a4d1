"""Texts to a plan: read, parse, check, stratify, plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..analysis.checks import check_aggregates, check_atoms, check_grounded
from ..analysis.domains import check_domains, declared_domains
from ..analysis.keys import check_key, drop_key
from ..analysis.projections import Projections
from ..analysis.scopes import resolve
from ..analysis.strata import clause_uses, stratify
from ..analysis.subtypes import check_subtypes
from ..analysis.types import PRIMITIVES, Inference, Types, argument_kinds, declared_types, kind_of, plan_type
from ..analysis.warnings import warn
from ..language import syntax as ast
from ..language.diagnostics import DatalogError, Diagnostic, EngineError, Reporter, did_you_mean
from ..language.parser import NoRulesError, parse
from ..language.preprocessor import Preprocessor
from ..language.sources import Sources, UnreadableError, line_starts, read_text
from ..language.syntax import Atom, Call, Clause, Module, RelationDeclaration, Text
from ..transform.branches import lower_branches
from ..transform.components import instantiate
from ..transform.inlining import inline
from ..transform.magic import ask
from ..transform.numbers import number_solutions
from ..transform.records import fold_records
from ..transform.walk import all_terms
from ..transform.witnesses import write_out_witnesses
from .cache import Request
from .plan import BranchFields, Column, Directive, Expression, Plan, Relation, Rule, Source, Stratum
from .planner import Schema, constant_arguments, plan_clause


@dataclass(frozen=True)
class Written:
    """The clauses of a program with the places of their rules, the kinds of their variables, and the types of
    the arguments of functors by the place and name of these."""

    clauses: tuple[tuple[Source, Clause], ...]
    kinds: tuple[Mapping[str, str], ...]
    types: Mapping[tuple[int, str], str]


def compile_program(request: Request) -> tuple[Plan, Sources, list[Diagnostic]]:
    """The plan of a program, the texts that it was made from, and warnings. Raises DatalogError."""
    compiler = _compiler(request)
    plan = compiler.plan()
    compiler.reporter.finish()
    return plan, compiler.sources, compiler.reporter.warnings()


def compile_goal(request: Request, goal: str, full: Collection[str]) -> Plan:
    """The plan of what a program has to compute for the relation ``goal``; of those in ``full`` all, where
    something of them is needed. Raises DatalogError."""
    compiler = _compiler(request)
    compiler.goals = [goal], full
    plan = compiler.plan()
    compiler.reporter.finish()
    return plan


def written_clauses(request: Request) -> Written:
    """The clauses of a program that has no errors, as proofs see them: with the joins that the text
    states."""
    compiler = _compiler(request)
    compiler.plan()
    return compiler.written_out()


def _compiler(request: Request) -> _Compiler:
    """What has read a program. Raises DatalogError where a file cannot be read."""
    sources = Sources()
    reporter = Reporter(sources)
    module = Module()
    folders = [Path(folder).resolve() for folder in request.include_from]
    reader = _Reader(sources, reporter, module, request.texts, folders)
    for path in request.paths:
        reader.read_root(Path(path))
    for name, text in request.texts.items():
        reader.read(name, text, Path(name).parent.resolve())
    if not request.files:
        _check_no_files(module, reporter)
    compiler = _Compiler(module, sources, reporter, request.key, request.untyped, request.updates)
    compiler.magic = request.magic
    return compiler


def _check_no_files(module: Module, reporter: Reporter) -> None:
    """Report directives that name files: these rules get their facts from whoever runs them."""
    for directive in module.directives:
        if {"IO", "filename", "dbname"} & dict(directive.parameters).keys():
            message = f"this `.{directive.kind}` names a file, but these rules read and write none"
            hint = f"write: .{directive.kind} {directive.name}"
            reporter.error("E0105", directive.at, message, hint)


class _Reader:
    """Reads each file once, included ones where they are included first.

    A file may include what is in the folder of the file that was named first, or in ``folders``. What it
    includes must begin as rules do: no message shows a line of another file.
    """

    def __init__(
        self,
        sources: Sources,
        reporter: Reporter,
        module: Module,
        texts: Mapping[str, str],
        folders: Sequence[Path],
    ) -> None:
        self.sources = sources
        self.reporter = reporter
        self.module = module
        self.texts = texts
        self.folders = folders
        self.top = Path()  # the folder of the file that was named first
        self.seen: set[tuple[str, int]] = set()
        self.preprocessor = Preprocessor(self.peek)

    def read_root(self, path: Path) -> None:
        try:
            text = read_text(path)
        except UnreadableError as error:
            message = f"cannot read this file: {error}"
            raise DatalogError([Diagnostic(str(path), 1, 1, "E0106", message)]) from None
        self.read(str(path), text, path.parent.resolve())

    def read(
        self, name: str, text: str, folder: Path, module: Module | None = None, included: bool = False
    ) -> None:
        """Add what a text says to ``module``; ``folder`` is where included files may be."""
        if module is None:
            module, self.top = self.module, folder
        identity = name if name in self.texts else str(Path(name).resolve())
        if (identity, id(module)) in self.seen:
            return
        self.seen.add((identity, id(module)))
        text, wrong = self.preprocessor.expand(text, identity)
        start = self.sources.add(name, text)
        for line, message in wrong:
            self.reporter.error("E0108", start + line_starts(text)[line], message)

        def include(target: str, at: int, into: Module) -> None:
            if target in self.texts:
                self.read(target, self.texts[target], folder, into)
            else:
                self.include(Path(name).parent, target, at, folder, into)

        parse(text, start, module, self.reporter, include, strict=included)

    def peek(self, target: str, file: str) -> tuple[str, str] | None:
        """The file that a file includes by a name, as it is known, and its text; None where it cannot be."""
        if target in self.texts:
            return target, self.texts[target]
        try:
            path = self.find(Path(file).parent, target)
            folders = (self.top, *self.folders)
            if any(path.resolve().is_relative_to(allowed) for allowed in folders):
                return str(path.resolve()), read_text(path)
        except (UnreadableError, OSError, ValueError, RuntimeError):
            pass
        return None

    def find(self, beside: Path, target: str) -> Path:
        """The path of a file that is included: beside the file that includes it, or in one of the folders."""
        path = beside / target
        if path.exists():
            return path
        return next((found for f in self.folders if (found := f / target).exists()), path)

    def include(self, beside: Path, target: str, at: int, folder: Path, module: Module) -> None:
        path = beside / target
        try:
            path = self.find(beside, target)
            resolved = path.resolve()
            if not any(resolved.is_relative_to(allowed) for allowed in (folder, *self.folders)):
                message = f'"{target}" is not in the folder of the rule file'
                hint = f"if it may be included, allow its folder: {resolved.parent}"
                self.reporter.error("E0106", at, message, hint)
                return
            self.read(str(path), read_text(path), folder, module, included=True)
        except NoRulesError:
            hint = "its first statement has a syntax error: load the file by itself to see it"
            self.reporter.error("E0106", at, f'"{target}" is no file of rules', hint)
        except (UnreadableError, OSError, ValueError, RuntimeError) as error:
            # Of a path itself: a null byte, a name that is too long, links that lead to one another.
            reason = getattr(error, "strerror", None) or str(error)
            self.reporter.error("E0106", at, f'cannot read "{target}": {reason}', f"looked for {path}")


class _Compiler:
    def __init__(
        self,
        module: Module,
        sources: Sources,
        reporter: Reporter,
        key: str | None,
        untyped: Callable[[str], bool],
        updates: bool,
    ) -> None:
        self.module = module
        self.updates = updates
        self.untyped = untyped
        self.sources = sources
        self.reporter = reporter
        self.key = key
        self.named: dict[Text, dict[str, str]] = {}  # rule with a sentence -> variable in it -> type
        self.goals: tuple[Collection[str], Collection[str]] | None = None  # for `ask`
        self.magic = False
        self.types: Types
        self.written: list[tuple[Clause, dict[str, str]]] = []  # with the kinds of their variables

    def plan(self) -> Plan:
        if not instantiate(self.module, self.reporter):
            self.reporter.finish()
        if not self.module.unread:
            warn(self.module, self.reporter)
        if not inline(self.module, self.reporter):
            self.reporter.finish()
        types = declared_types(self.module.types, self.reporter)
        if self.key is not None and self.key not in types.kinds:
            hint = did_you_mean(self.key, types.kinds)
            raise EngineError(
                f"the program has no type `{self.key}` for its key" + (f"; {hint}" if hint else "")
            )
        declared = self.declared_relations(types)
        columns = {
            name: tuple(c.type_name if c.type_name in types.kinds else "number" for c in relation.columns)
            for name, relation in declared.items()
        }
        flags = self.directives(declared)
        clauses = self.checked_clauses(declared, columns, types, self.keyed(declared))
        if not len(self.reporter):
            lowered = [(x, kinds) for c, kinds in clauses for x in _lowered(c, types)]
            self.types, self.written = types, lowered
            clauses = self.written
            if goals := self.goals or self.asked(declared, flags):
                clauses, copies = ask(clauses, declared, *goals)
                declared |= copies
            clauses = self.numbered(declared, clauses)
        clauses += self.projected(declared, clauses, types)
        groups = stratify(list(declared), [clause for clause, _ in clauses], self.reporter)
        if not self.module.unread:
            self.check_recursion(groups, declared, clauses)
        self.reporter.finish()
        index = {name: i for i, name in enumerate(declared)}
        gives = self.helpers(declared, clauses)

        keyed = self.keyed(declared)
        relations = tuple(
            Relation(
                name,
                tuple(
                    Column(c.name, types.root(c.type_name), c.type_name)
                    for c in declaration.columns[1 if name in keyed else 0 :]
                ),
                "eqrel" in declaration.qualifiers,
                "input" in flags.get(name, ()),
                bool({"output", "printsize"} & flags.get(name, set())),
                name in keyed,
                "sorted" in declaration.qualifiers,
                _choices(declaration, name in keyed),
                index.get(gives.get(name, "")),
                self.most(name),
            )
            for name, declaration in declared.items()
        )
        kinds = {
            relation.name: tuple(types.kinds[c.type_name] for c in relation.columns) for relation in relations
        }
        if keyed:
            clauses = [(drop_key(clause, keyed), variables) for clause, variables in clauses]
        index = {name: i for i, name in enumerate(declared)}
        return self.assembled(
            relations, clauses, _ordered(groups, keyed), Schema(index, kinds, types, not keyed)
        )

    def asked(
        self, declared: Mapping[str, RelationDeclaration], flags: Mapping[str, set[str]]
    ) -> tuple[Collection[str], Collection[str]] | None:
        """What a program that asks for magic sets gives, and the relations that are left as they are."""
        pragmas = dict(self.module.pragmas)
        if not self.magic or "magic-transform" not in pragmas:
            return None
        chosen = set(pragmas["magic-transform"].split(","))
        outputs = [name for name in declared if {"output", "printsize"} & flags.get(name, set())]
        left = {
            name
            for name, declaration in declared.items()
            if "input" in flags.get(name, ())
            or "no_magic" in declaration.qualifiers
            or name in pragmas.get("magic-transform-exclude", "").split(",")
            or not ("*" in chosen or name in chosen or "magic" in declaration.qualifiers)
        }
        return outputs, left

    def written_out(self) -> Written:
        """The clauses that give tuples, in the order of the text."""
        found, kinds_of_clauses, kinds_of_calls = [], [], {}
        for clause, kinds in self.written:
            if not clause.subsumes:
                found.append((self.source(clause.text), clause))
                kinds_of_clauses.append(kinds)
            for literal in (clause.head, *clause.body):
                for term in all_terms(literal):
                    if isinstance(term, Call):
                        kind = kind_of(term, kinds, self.types) or "number"
                        kind = argument_kinds(term, kind, kinds, self.types)[0]
                        kinds_of_calls[term.at, term.name] = plan_type(kind)
        return Written(tuple(found), tuple(kinds_of_clauses), kinds_of_calls)

    def check_recursion(
        self,
        groups: list[list[str]],
        declared: Mapping[str, RelationDeclaration],
        clauses: list[tuple[Clause, dict[str, str]]],
    ) -> None:
        """Report counters in recursive rules, and plans for versions that a rule does not have."""
        group_of = {name: group for group in groups for name in group}
        for name, relation in declared.items():
            if "sorted" in relation.qualifiers and len(group_of[name]) > 1:
                message = "a recursive rule cannot count: its solutions come round by round"
                self.reporter.error("E0403", relation.at, message)
        for clause, _ in clauses:
            members = group_of[clause.head.name]
            versions = sum(isinstance(x, Atom) and x.name in members for x in clause.body)
            for version, at in clause.plans:
                if version >= max(versions, 1) or (not versions and not clause.subsumes):
                    has = f"{versions}, from 0 on" if versions else "none, for it is not recursive"
                    message = f"this rule has no version {version} to plan: it has {has}"
                    self.reporter.error("E0102", at, message)

    def numbered(
        self, declared: dict[str, RelationDeclaration], clauses: list[tuple[Clause, dict[str, str]]]
    ) -> list[tuple[Clause, dict[str, str]]]:
        """The clauses, those that count in two parts; declares the relations of what is counted."""
        found: list[tuple[Clause, dict[str, str]]] = []
        for clause, kinds in clauses:
            parts = number_solutions(clause, kinds, len(found))
            if parts is None:
                found.append((clause, kinds))
            else:
                relation, solutions, counting = parts
                declared[relation.name] = relation
                found += [(solutions, kinds), (counting, kinds)]
        return found

    def most(self, name: str) -> int | None:
        """The number of tuples after which a relation takes no more rounds, by ``.limitsize``."""
        limits = [d for d in self.module.directives if d.kind == "limitsize" and d.name == name]
        return min((int(dict(d.parameters)["n"][:18]) for d in limits), default=None)

    def helpers(
        self, declared: dict[str, RelationDeclaration], clauses: list[tuple[Clause, dict[str, str]]]
    ) -> dict[str, str]:
        """Declare relations for candidates of choices and for what is superfluous; returns what each is
        for."""
        found = {f"{name}@candidates": name for name, relation in declared.items() if relation.choices}
        subsumed = dict.fromkeys(clause.head.name for clause, _ in clauses if clause.subsumes)
        found |= {f"{name}@superfluous": name for name in subsumed}
        for helper, name in found.items():
            declared[helper] = declared[name]._replace(name=helper, qualifiers=frozenset(), choices=())
        return found

    def keyed(self, declared: Mapping[str, RelationDeclaration]) -> frozenset[str]:
        """The relations whose first column has the key's type."""
        return frozenset(
            name
            for name, relation in declared.items()
            if self.key is not None and relation.columns and relation.columns[0].type_name == self.key
        )

    def projected(
        self,
        declared: dict[str, RelationDeclaration],
        clauses: list[tuple[Clause, dict[str, str]]],
        types: Types,
    ) -> list[tuple[Clause, dict[str, str]]]:
        """Replace atoms in aggregates by projections where needed; declares them and returns their rules."""
        projections = Projections(declared, self.reporter)
        clauses[:] = [(projections.clause(clause), kinds) for clause, kinds in clauses]
        declared.update(projections.relations)
        return [
            (
                clause,
                {c.name: types.kinds.get(c.type_name, "number") for c in declared[clause.head.name].columns},
            )
            for clause in projections.clauses
        ]

    def declared_relations(self, types: Types) -> dict[str, RelationDeclaration]:
        declared: dict[str, RelationDeclaration] = {}
        for declaration in self.module.relations:
            if declaration.name in declared:
                first = self.sources.locate(declared[declaration.name].at)
                self.reporter.error(
                    "E0202",
                    declaration.at,
                    f"the relation `{declaration.name}` is declared twice",
                    f"it is declared first at {first.file}:{first.line}",
                )
                continue
            declared[declaration.name] = declaration
            if declaration.name in types.kinds and declaration.name not in PRIMITIVES:
                self.reporter.error(
                    "E0202",
                    declaration.at,
                    f"`{declaration.name}` is a type already",
                    "give the relation another name",
                )
            names: set[str] = set()
            for column in declaration.columns:
                if column.name in names:
                    self.reporter.error("E0202", column.at, f"the column `{column.name}` is declared twice")
                names.add(column.name)
                if column.type_name not in types.kinds:
                    hint = partial(did_you_mean, column.type_name, types.kinds)
                    self.reporter.error("E0201", column.at, f"unknown type `{column.type_name}`", hint)
            if "eqrel" in declaration.qualifiers and (
                len(declaration.columns) != 2
                or len({types.kinds.get(column.type_name) for column in declaration.columns}) != 1
            ):
                self.reporter.error(
                    "E0303", declaration.at, f"the eqrel `{declaration.name}` needs two columns of one type"
                )
            known = {column.name for column in declaration.columns}
            for group, at in declaration.choices:
                for name in group:
                    if name not in known:
                        hint = partial(did_you_mean, name, known)
                        message = f"`{declaration.name}` has no column `{name}`"
                        self.reporter.error("E0201", at, message, hint)
        self.check_subsuming(declared)
        return declared

    def check_subsuming(self, declared: Mapping[str, RelationDeclaration]) -> None:
        """Report relations whose tuples cannot be deleted, and rules that compare tuples of two relations."""
        for name in dict.fromkeys(clause.head.name for clause in self.module.clauses if clause.subsumes):
            declaration = declared.get(name)
            if declaration is not None and not declaration.columns:
                message = f"`{name}` has one tuple at most, which nothing makes superfluous"
                self.reporter.error("E0303", declaration.at, message)
        for clause in self.module.clauses:
            if (
                clause.subsumes
                and isinstance(clause.body[1], Atom)
                and clause.body[1].name != clause.head.name
            ):
                message = "the tuples before and after `<=` are of two relations"
                self.reporter.error("E0303", clause.head.at, message)

    def checked_clauses(
        self,
        declared: Mapping[str, RelationDeclaration],
        columns: Mapping[str, tuple[str, ...]],
        types: Types,
        keyed: frozenset[str],
    ) -> list[tuple[Clause, dict[str, str]]]:
        """The clauses that name known relations, with the kinds of their variables."""
        kinds = {name: tuple(types.kinds[t] for t in names) for name, names in columns.items()}
        inference = Inference(types, kinds, self.reporter)
        domains = declared_domains(self.module.clauses)
        checked = []
        for written in [clause for each in self.module.clauses for clause in fold_records(each)]:
            try:
                check_aggregates(written, self.reporter)
                clause = resolve(write_out_witnesses(written))
                if check_atoms(clause, self.module, declared, self.reporter):
                    errors = len(self.reporter)
                    checked.append((clause, inference.clause(clause)))
                    check_grounded(clause, self.reporter)
                    if len(self.reporter) == errors:
                        plain = self.untyped(self.sources.file(clause.text.start))
                        exact = {self.key} if plain else None
                        found = check_subtypes(clause, columns, types, self.reporter, exact)
                        self.note_types(clause.text, found)
                    check_domains(clause, columns, domains, self.reporter)
                    if self.key is not None:
                        check_key(clause, keyed, self.key, self.reporter)
            except RecursionError:
                self.reporter.error("E0107", written.text.start, "this rule is nested too deeply")
        return checked

    def note_types(self, text: Text, types: Mapping[str, str]) -> None:
        """Note the types of the variables that the sentence of a rule names."""
        if not text.sentence:
            return
        known = self.named.setdefault(text, {})
        for name in text.named:
            if types.get(name, "number") not in PRIMITIVES:
                known.setdefault(name, types[name])

    def directives(self, declared: Mapping[str, RelationDeclaration]) -> dict[str, set[str]]:
        flags: dict[str, set[str]] = {name: set() for name in declared}
        for directive in self.module.directives:
            if directive.name in declared:
                if directive.kind in flags[directive.name] & {"printsize", "limitsize"}:
                    message = f"`.{directive.kind}` of `{directive.name}` stands here a second time"
                    self.reporter.error("E0202", directive.at, message)
                flags[directive.name].add(directive.kind)
            elif directive.name not in self.module.broken:
                hint = partial(did_you_mean, directive.name, declared)
                self.reporter.error("E0201", directive.at, f"unknown relation `{directive.name}`", hint)
        return flags

    def assembled(
        self,
        relations: tuple[Relation, ...],
        clauses: list[tuple[Clause, dict[str, str]]],
        groups: list[tuple[list[str], bool]],
        schema: Schema,
    ) -> Plan:
        by_head: dict[str, list[tuple[Clause, dict[str, str]]]] = {}
        for clause, variables in clauses:
            by_head.setdefault(clause.head.name, []).append((clause, variables))
        sources: list[Source] = []
        source_of: dict[Text, int] = {}
        rules: list[Rule] = []
        facts: list[tuple[int, tuple[Expression, ...]]] = []
        strata: list[Stratum] = []
        shared = 0
        taken = _Taken()
        for group, is_shared in groups:
            once: list[int] = []
            again: list[int] = []
            more: list[int] = []
            subsuming: list[int] = []
            members = frozenset(group)
            for name in group:
                for clause, variables in by_head.get(name, ()):
                    constants = constant_arguments(clause, schema)
                    if constants is not None and not clause.subsumes:
                        if taken.take(relations[schema.index[name]], constants):
                            facts.append((schema.index[name], constants))
                        continue
                    if clause.text not in source_of:
                        source_of[clause.text] = len(sources)
                        sources.append(self.source(clause.text))
                    recursive = any(use.relation in members for use in clause_uses(clause))
                    helper = f"{name}@superfluous" if clause.subsumes else f"{name}@candidates"
                    if helper in schema.index:
                        clause = clause._replace(head=clause.head._replace(name=helper))
                    planned = plan_clause(clause, variables, schema, members, source_of[clause.text])
                    kind = subsuming if clause.subsumes else again if recursive else once
                    kind.extend(range(len(rules), len(rules) + len(planned)))
                    rules += planned
                    if self.updates and not clause.subsumes:
                        planned = plan_clause(clause, variables, schema, schema.index, source_of[clause.text])
                        more.extend(range(len(rules), len(rules) + len(planned)))
                        rules += planned
            if once or again or subsuming:
                indices = tuple(schema.index[name] for name in group)
                helpers = [
                    tuple(schema.index[n] for name in group if (n := f"{name}@{what}") in schema.index)
                    for what in ("candidates", "superfluous")
                ]
                # What is chosen, deleted or numbered depends on all that there is.
                counts = any("@" in name for name in group)
                grows = self.updates and not (any(helpers) or counts)
                updates = tuple(more) if grows else None
                strata.append(
                    Stratum(indices, tuple(once), tuple(again), updates, tuple(subsuming), *helpers)
                )
                shared += is_shared
        return Plan(
            relations,
            tuple(rules),
            tuple(strata),
            tuple(sources),
            self.key,
            shared,
            tuple(facts),
            _records(schema.types),
            tuple(map(self.directive, self.module.directives)),
            _branches(schema.types),
        )

    def directive(self, written: ast.Directive) -> Directive:
        place = self.sources.locate(written.at)
        parameters = dict(written.parameters)
        return Directive(written.kind, written.name, parameters, place.file, place.line, place.column)

    def source(self, text: Text) -> Source:
        place = self.sources.locate(text.start)
        written = self.sources.slice(text.start, text.end)
        types = tuple(self.named.get(text, {}).items())
        return Source(place.file, place.line, written, text.sentence, types)


def _records(types: Types) -> dict[str, tuple[Column, ...]]:
    """The fields of every type that is a record, by all of its names."""
    return {
        name: tuple(Column(c.name, types.root(c.type_name), c.type_name) for c in types.columns[kind])
        for name, kind in sorted(types.kinds.items())
        if kind in types.columns
    }


def _lowered(clause: Clause, types: Types) -> list[Clause]:
    """The clauses that have records in place of the branches of a clause."""
    return fold_records(lower_branches(clause, types)) if types.branches else [clause]


class _Taken:
    """What the facts of relations with choices have in the columns of each."""

    def __init__(self) -> None:
        self._seen: set[object] = set()

    def take(self, relation: Relation, row: Sequence[Expression]) -> bool:
        """Whether a fact agrees with none before it."""
        parts = {(relation.name, columns, tuple(row[c] for c in columns)) for columns in relation.choices}
        free = parts.isdisjoint(self._seen)
        if free:
            self._seen |= parts
        return free


def _choices(relation: RelationDeclaration, keyed: bool) -> tuple[tuple[int, ...], ...]:
    """The columns of each group of a choice, without the key's."""
    places = {column.name: i - keyed for i, column in enumerate(relation.columns)}
    return tuple(tuple(places[n] for n in names if places[n] >= 0) for names, _ in relation.choices)


def _branches(types: Types) -> dict[str, dict[str, BranchFields]]:
    """The branches of every algebraic data type, by all names of the type."""
    found: dict[str, dict[str, BranchFields]] = {}
    for name, branch in sorted(types.branches.items(), key=lambda pair: pair[1].number):
        columns = tuple(Column(c.name, types.root(c.type_name), c.type_name) for c in branch.columns)
        found.setdefault(branch.type_name, {})[name] = BranchFields(columns, branch.slots)
    return {name: found[kind] for name, kind in sorted(types.kinds.items()) if kind in found}


def _ordered(groups: list[list[str]], keyed: frozenset[str]) -> list[tuple[list[str], bool]]:
    """The groups with whether each is shared by all keys; shared ones first, otherwise in the same order."""
    marked = [(group, bool(keyed) and not keyed.intersection(group)) for group in groups]
    return [g for g in marked if g[1]] + [g for g in marked if not g[1]]
