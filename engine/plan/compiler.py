"""Texts to a plan: read, parse, check, stratify, plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..analysis.checks import check_aggregates, check_atoms, check_fact, check_grounded
from ..analysis.declarations import check_no_files, declare_once, declared_relations, directives_of
from ..analysis.domains import check_domains, declared_domains
from ..analysis.inference import Inference, argument_kinds, cast_functor, kind_of
from ..analysis.keys import check_key, drop_key
from ..analysis.orders import check_orders
from ..analysis.projections import Projections
from ..analysis.scopes import resolve
from ..analysis.strata import clause_uses, stratify, united
from ..analysis.subtypes import check_subtypes
from ..analysis.types import PRIMITIVES, Types, declared_types, plan_type
from ..analysis.warnings import warn
from ..language import syntax as ast
from ..language.diagnostics import Diagnostic, EngineError, MutedReporter, Reporter, did_you_mean
from ..language.reading import FileReader
from ..language.sources import Sources
from ..language.syntax import Aggregate, Call, Cast, Clause, Module, RelationDeclaration, RuleText
from ..language.walk import all_terms
from ..transform.branches import lower_branches
from ..transform.components import instantiate
from ..transform.functors import lower_functors
from ..transform.heights import Proved, by_height, computed, limited
from ..transform.inlining import inline
from ..transform.lattices import lower_lattices, unfolded
from ..transform.magic import ask
from ..transform.narrowing import narrow
from ..transform.numbers import number_solutions, uncounted
from ..transform.records import fold_records
from ..transform.rounds import note_rounds
from ..transform.witnesses import write_out_witnesses
from .assembly import (
    CANDIDATES,
    SUPERFLUOUS,
    Assembly,
    branches_of,
    choices_of,
    columns_of,
    helper,
    records_of,
)
from .cache import Request
from .plan import PlanDirective, QueryPlan, Relation, Source
from .planner import Schema


@dataclass(frozen=True)
class CheckedClauses:
    """The clauses of a program, with the places of their rules, and the kinds of their variables. ``types``
    are those of the arguments of functors and aggregates, by their place and name. Clauses that delete
    tuples, and the declared types, are separate."""

    clauses: tuple[tuple[Source, Clause], ...]
    kinds: tuple[Mapping[str, str], ...]
    types: Mapping[tuple[int, str], str]
    subsuming: tuple[Clause, ...]
    declared: Types


def compile_program(request: Request) -> tuple[QueryPlan, Sources, list[Diagnostic]]:
    """The plan of a program, the texts that it was made from, and warnings. Raises DatalogError."""
    compiler = _compiler(request)
    plan = compiler.plan()
    compiler.reporter.finish()
    return plan, compiler.sources, compiler.reporter.warnings()


def outputs_of(declared: Iterable[str], flags: Mapping[str, set[str]]) -> list[str]:
    """The relations that ``.output`` or ``.printsize`` names."""
    return [name for name in declared if {"output", "printsize"} & flags.get(name, set())]


def compile_goal(request: Request, goal: str, full: Collection[str]) -> QueryPlan:
    """The plan of the relations that ``goal`` needs; those in ``full`` are computed completely if any of
    their tuples is needed. Raises DatalogError."""
    compiler = _compiler(request)
    compiler.goals = [goal], full
    plan = compiler.plan()
    compiler.reporter.finish()
    return plan


def compile_heights(request: Request, proved: Proved) -> tuple[QueryPlan, list[tuple[str, str]]]:
    """The plan whose outputs find the tuples of a relation, and of all that its proofs may go through, in the
    order of their heights, as ``by_height`` says; and the relations that it takes as they were computed, each
    with its name in the program."""
    compiler = _compiler(replace(request, updates=False, magic=False))
    compiler.proved = proved
    plan = compiler.plan()
    names = [(relation.name, computed(relation.name)) for relation in plan.relations]
    shared = [
        (its, name) for its, name in names if its != name or (name not in proved.derived and "@" not in name)
    ]
    given = {names.index(pair) for pair in shared}
    return replace(
        plan,
        relations=tuple(replace(r, output=r.name in compiler.together[-1]) for r in plan.relations),
        strata=tuple(stratum for stratum in plan.strata if not given.issuperset(stratum.relations)),
        facts=tuple(fact for fact in plan.facts if fact[0] not in given),
    ), shared


def compile_losses(request: Request) -> QueryPlan:
    """The plan that finds what no longer follows after facts were removed, for ``Store.plan_losses``.

    Behind the relations of the program each of them has another, for its lost tuples. The strata are those of
    the program: see ``Assembly.losses``.
    """
    compiler = _compiler(request)
    compiler.losing = True
    plan = compiler.plan()
    compiler.reporter.finish()
    return plan


def written_clauses(request: Request) -> CheckedClauses:
    """The clauses of a program that has no errors, as proofs see them: with the joins that the text
    states."""
    compiler = _compiler(request)
    compiler.plan()
    return compiler.written_out()


def _compiler(request: Request) -> _Compiler:
    """A compiler that has read a program. Raises DatalogError if a file cannot be read."""
    sources = Sources()
    reporter = Reporter(sources)
    module = Module(callable=frozenset(request.functors))
    folders = [Path(folder).resolve() for folder in request.include_from]
    reader = FileReader(sources, reporter, module, request.texts, folders, request.macros)
    for path in request.paths:
        reader.read_root(Path(path))
    for name, text in request.texts.items():
        reader.read(name, text, Path(name).parent.resolve())
    module.pragmas += request.pragmas.items()
    if not request.files:
        check_no_files(module, reporter)
    compiler = _Compiler(module, sources, reporter, request.key, request.untyped, request.updates)
    compiler.magic = request.magic
    return compiler


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
        self.named: dict[RuleText, dict[str, str]] = {}  # rule with a sentence -> variable in it -> type
        self.goals: tuple[Collection[str], Collection[str]] | None = None  # for `ask`
        self.proved: Proved | None = None  # for `by_height`
        self.together: Sequence[Sequence[str]] = ()  # relations that this computes in one stratum
        self.magic = False
        self.losing = False  # whether to plan what finds the tuples that no longer follow
        self.types: Types
        self.written: list[tuple[Clause, dict[str, str]]] = []  # with the kinds of their variables

    def plan(self) -> QueryPlan:
        types = self.flattened()
        declared = declared_relations(self.module, types, self.reporter)
        flags = directives_of(self.module, declared, self.reporter)
        clauses = self.checked_clauses(declared, types)
        if not len(self.reporter):
            clauses = [(x, kinds) for c, kinds in clauses for x in _lowered(c, types)]
            self.types, self.written = types, clauses
            if self.magic:
                limited = [name for name in declared if self.most(name) is not None]
                clauses = narrow(clauses, declared, [*outputs_of(declared, flags), *limited])
            if goals := self.goals or self.asked(declared, flags):
                clauses, copies = ask(clauses, declared, *goals, updates=self.updates)
                declared |= copies
            if self.proved:
                heights = by_height(clauses, declared, types.kinds, self.proved)
                clauses, declared, self.together = heights
            clauses = self.numbered(declared, clauses)
        clauses += self.projected(declared, clauses, types)
        groups = stratify(list(declared), [clause for clause, _ in clauses], self.reporter)
        groups = united(groups, self.together)
        if not self.module.unread:
            self.check_recursion(groups, declared, clauses)
        self.reporter.finish()
        relations = self.relations(declared, flags, self.helpers(declared, clauses), types)
        return self.assembled(relations, clauses, groups, types)

    def flattened(self) -> Types:
        """The types of the module, after components, lattices and inlined relations are replaced."""
        if not instantiate(self.module, self.reporter):
            self.reporter.finish()
        declare_once(self.module, self.sources, self.reporter)
        if not note_rounds(self.module, self.reporter):
            self.reporter.finish()
        if not self.module.unread:
            warn(self.module, self.reporter)
        if not lower_lattices(self.module, self.reporter) or not inline(self.module, self.reporter):
            self.reporter.finish()
        lower_functors(self.module, self.reporter)
        types = declared_types(self.module.types, self.reporter)
        if self.key is not None and self.key not in types.kinds:
            hint = did_you_mean(self.key, types.kinds)
            message = f"the program has no type `{self.key}` for its key"
            raise EngineError(message + (f"; {hint}" if hint else ""))
        return types

    def relations(
        self,
        declared: Mapping[str, RelationDeclaration],
        flags: Mapping[str, set[str]],
        gives: Mapping[str, str],
        types: Types,
    ) -> tuple[Relation, ...]:
        """The relations of the plan, without the key; ``gives`` maps helpers to their relations."""
        index = {name: i for i, name in enumerate(declared)}
        keyed = self.keyed(declared)
        return tuple(
            Relation(
                name,
                columns_of(declaration.columns[1 if name in keyed else 0 :], types),
                "eqrel" in declaration.qualifiers,
                "input" in flags.get(name, ()),
                bool({"output", "printsize"} & flags.get(name, set())),
                name in keyed,
                "sorted" in declaration.qualifiers,
                choices_of(declaration, name in keyed),
                index[gives[name]] if name in gives else None,
                self.most(name),
            )
            for name, declaration in declared.items()
        )

    def assembled(
        self,
        relations: tuple[Relation, ...],
        clauses: list[tuple[Clause, dict[str, str]]],
        groups: list[list[str]],
        types: Types,
    ) -> QueryPlan:
        """The plan; the part that all keys share comes first."""
        keyed = frozenset(relation.name for relation in relations if relation.keyed)
        by_head: dict[str, list[tuple[Clause, dict[str, str]]]] = {}
        for clause, kinds in clauses:
            bare = drop_key(clause, keyed) if keyed else clause
            by_head.setdefault(clause.head.name, []).append((bare, kinds))
        schema = Schema(
            {relation.name: i for i, relation in enumerate(relations)},
            {r.name: tuple(types.kinds[c.type_name] for c in r.columns) for r in relations},
            types,
            not keyed,
        )
        assembly = Assembly(relations, schema, self.source, self.updates, self.reporter)
        shared = [group for group in groups if keyed and keyed.isdisjoint(group)]
        number = sum(assembly.add(group, by_head) for group in shared)
        ruled = [
            group
            for group in groups
            if (not keyed or not keyed.isdisjoint(group)) and assembly.add(group, by_head)
        ]
        if self.losing:
            relations = assembly.find_losses(ruled, by_head)
        return QueryPlan(
            relations,
            tuple(assembly.rules),
            tuple(assembly.strata),
            tuple(assembly.sources),
            self.key,
            number,
            tuple(assembly.facts),
            records_of(types),
            tuple(map(self.directive, self.module.directives)),
            () if self.key else tuple(self.module.symbols),
            branches_of(types),
        )

    def asked(
        self, declared: Mapping[str, RelationDeclaration], flags: Mapping[str, set[str]]
    ) -> tuple[Collection[str], Collection[str]] | None:
        """The transformation of a program that asks for magic sets, and the relations that it leaves
        unchanged."""
        pragmas = dict(self.module.pragmas)
        if not self.magic or "magic-transform" not in pragmas:
            return None
        chosen = set(pragmas["magic-transform"].split(","))
        outputs = outputs_of(declared, flags)
        left = {
            name
            for name, declaration in declared.items()
            if "input" in flags.get(name, ())
            or "no_magic" in declaration.qualifiers
            or name in pragmas.get("magic-transform-exclude", "").split(",")
            or not ("*" in chosen or name in chosen or "magic" in declaration.qualifiers)
        }
        return outputs, left

    def written_out(self) -> CheckedClauses:
        """The clauses that give tuples, in the order of the text."""
        clauses, kinds_of_clauses = [], []
        kinds_of_calls: dict[tuple[int, str], str] = {}
        for clause, kinds in unfolded(self.written, paired=False):
            if not clause.subsumes:
                clauses.append((self.source(clause.text), uncounted(clause)))
                kinds_of_clauses.append(kinds)
            for literal in (clause.head, *clause.body):
                for term in all_terms(literal):
                    if isinstance(term, Call):
                        kind = kind_of(term, kinds, self.types) or "number"
                        kind = argument_kinds(term, kind, kinds, self.types)[0]
                        kinds_of_calls[term.at, term.name] = plan_type(kind)
                    elif isinstance(term, Cast):
                        if functor := cast_functor(term, kinds, self.types):
                            kinds_of_calls[term.at, "as"] = functor
                    elif isinstance(term, Aggregate):
                        kind = kind_of(term, kinds, self.types) or "number"
                        kinds_of_calls[term.at, term.function] = plan_type(kind)
        subsuming = tuple(clause for clause, _ in self.written if clause.subsumes)
        return CheckedClauses(tuple(clauses), tuple(kinds_of_clauses), kinds_of_calls, subsuming, self.types)

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
        check_orders((clause for clause, _ in clauses), groups, self.reporter)

    def numbered(
        self, declared: dict[str, RelationDeclaration], clauses: list[tuple[Clause, dict[str, str]]]
    ) -> list[tuple[Clause, dict[str, str]]]:
        """The clauses, with counting ones in two parts; declares relations for counted solutions."""
        numbered: list[tuple[Clause, dict[str, str]]] = []
        for clause, kinds in clauses:
            parts = number_solutions(clause, kinds, len(numbered))
            if parts is None:
                numbered.append((clause, kinds))
            else:
                relation, solutions, counting = parts
                declared[relation.name] = relation
                numbered += [(solutions, kinds), (counting, kinds)]
        return numbered

    def most(self, name: str) -> int | None:
        """The number of tuples after which a relation takes no more rounds, by ``.limitsize``."""
        limits = [d for d in self.module.directives if d.kind == "limitsize" and d.name == limited(name)]
        return min((int(dict(d.parameters)["n"][:18]) for d in limits), default=None)

    def helpers(
        self, declared: dict[str, RelationDeclaration], clauses: list[tuple[Clause, dict[str, str]]]
    ) -> dict[str, str]:
        """Declare relations for candidates of choices and for superfluous tuples. Returns the purpose of
        each."""
        purposes = {helper(name, CANDIDATES): name for name, relation in declared.items() if relation.choices}
        subsumed = dict.fromkeys(clause.head.name for clause, _ in clauses if clause.subsumes)
        purposes |= {helper(name, SUPERFLUOUS): name for name in subsumed}
        for new, name in purposes.items():
            declared[new] = declared[name]._replace(name=new, qualifiers=frozenset(), choices=())
        return purposes

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

    def checked_clauses(
        self, declared: Mapping[str, RelationDeclaration], types: Types
    ) -> list[tuple[Clause, dict[str, str]]]:
        """The clauses that name known relations, with the kinds of their variables."""
        columns = {
            name: tuple(c.type_name if c.type_name in types.kinds else "number" for c in relation.columns)
            for name, relation in declared.items()
        }
        keyed = self.keyed(declared)
        kinds = {name: tuple(types.kinds[t] for t in names) for name, names in columns.items()}
        broken = {n for n, r in declared.items() if not all(types.is_known(c.type_name) for c in r.columns)}
        domains = declared_domains(self.module.clauses)
        checked = []
        for written in [clause for each in self.module.clauses for clause in fold_records(each)]:
            try:
                check_aggregates(written, self.reporter)
                clause = resolve(write_out_witnesses(written))
                if check_atoms(clause, self.module, declared, self.reporter):
                    errors = len(self.reporter)
                    # Columns whose type is in error are not reported again.
                    sure = not broken or broken.isdisjoint(_named(clause))
                    reporter = self.reporter if sure else MutedReporter(self.sources, self.reporter)
                    checked.append((clause, Inference(types, kinds, reporter).clause(clause)))
                    check_grounded(clause, self.reporter)
                    check_fact(clause, self.reporter)
                    if sure and len(self.reporter) == errors:
                        plain = self.untyped(self.sources.file(clause.text.start))
                        exact = {self.key} if plain else None
                        types_of_variables = check_subtypes(clause, columns, types, self.reporter, exact)
                        self.note_types(clause.text, types_of_variables)
                    check_domains(clause, columns, domains, self.reporter)
                    if self.key is not None:
                        check_key(clause, keyed, self.key, self.reporter)
            except RecursionError:
                self.reporter.error("E0107", written.text.start, "this rule is nested too deeply")
        return checked

    def note_types(self, text: RuleText, types: Mapping[str, str]) -> None:
        """Note the types of the variables that the sentence of a rule names."""
        if not text.sentence:
            return
        noted = self.named.setdefault(text, {})
        for name in text.named:
            if types.get(name, "number") not in PRIMITIVES:
                noted.setdefault(name, types[name])

    def directive(self, written: ast.Directive) -> PlanDirective:
        place = self.sources.locate(written.at)
        parameters = dict(written.parameters)
        return PlanDirective(written.kind, written.name, parameters, place.file, place.line, place.column)

    def source(self, text: RuleText) -> Source:
        place = self.sources.locate(text.start)
        written = self.sources.slice(text.start, text.end)
        types = tuple(self.named.get(text, {}).items())
        return Source(place.file, place.line, written, text.sentence, types)


def _named(clause: Clause) -> set[str]:
    """The relations that a clause names."""
    return {clause.head.name, *(use.relation for use in clause_uses(clause))}


def _lowered(clause: Clause, types: Types) -> list[Clause]:
    """The clauses that have records in place of the branches of a clause."""
    return fold_records(lower_branches(clause, types)) if types.branches else [clause]
