"""Components: each ``.init`` becomes a copy of the contents of the component, and of its base components.

The copy of a relation, type or branch ``name`` in the instance ``i`` is called ``i.name``. Rules for
relations that are declared outside of the component keep the names of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import NoReturn

from ..language.diagnostics import Reporter, counted, did_you_mean
from ..language.syntax import (
    Atom,
    Branch,
    Cast,
    Clause,
    ColumnDeclaration,
    Component,
    ComponentInstance,
    ComponentType,
    Lattice,
    Module,
    RelationDeclaration,
    RuleText,
    Term,
    TypeDeclaration,
)
from ..language.walk import rewrite_clause, rewrite_term

DEEPEST = 100  # instances within instances, and components derived from one another
_CHARACTERS = 4 << 20  # the approximate size of instances in characters; nested ones count for each level

Binding = Mapping[str, str]


def instantiate(module: Module, reporter: Reporter) -> bool:
    """Expand the components of a module and their instances. False after errors."""
    errors = len(reporter)
    if module.components or module.instances:
        with suppress(_TooManyCopiesError):
            _Instantiation(module, reporter).run()
    return len(reporter) == errors


class _TooManyCopiesError(Exception):
    """Instances copy too much; it has been reported."""


class _Instantiation:
    def __init__(self, module: Module, reporter: Reporter) -> None:
        self._module, self._reporter = module, reporter
        self._around: dict[int, Component | None] = {}
        self._inside: dict[int, dict[str, Component]] = {}
        self._parents: dict[tuple[int, frozenset[tuple[str, str]]], list[Component]] = {}
        self._counted = self._at = 0
        self._note(module.components, None)

    def _note(self, components: list[Component], around: Component | None) -> None:
        """Record the scope of each component, and the components of each scope; None is the top level."""
        self._inside[id(around)] = {c.type.name: c for c in reversed(components)}
        for component in components:
            self._around[id(component)] = around
            self._note(component.body.components, component)

    def run(self) -> None:
        module, errors = self._module, len(self._reporter)
        self._check_names()
        for component in module.components:
            self._check(component, {})
        for instance in module.instances:
            self._check_type(instance.type, None, {}, instance.at)
        if len(self._reporter) > errors:
            return
        for instance in module.instances:
            self._at = instance.at
            orphans: list[Clause] = []
            _add(module, self._instance(instance, None, {}, frozenset(), orphans, DEEPEST))
            module.clauses += orphans
        module.components, module.instances = [], []

    # ---- Checks -----------------------------------------------------------------------------------------

    def _check_names(self) -> None:
        names = {t.name: t.at for t in self._module.types} | {r.name: r.at for r in self._module.relations}
        given = [(c.type.name, c.type.at) for c in self._module.components]
        for name, at in (*given, *((i.name, i.at) for i in self._module.instances)):
            if name in names:
                self._reporter.error("E0202", at, f"the name `{name}` is taken already")
            names.setdefault(name, at)

    def _check(self, component: Component, binding: Binding) -> None:
        """Report unknown components, and overrides of relations that cannot be overridden."""
        name, around = component.type.name, self._around[id(component)]
        binding = {**binding, **dict.fromkeys(component.type.parameters, "")}
        for base in component.bases:
            self._check_type(base, around, binding, base.at)
        bases = self._bases(component)
        for relation, at in component.overrides.items():
            own = next((r for r in component.body.relations if r.name == relation), None)
            if own is not None:
                message = f"`{relation}` is a relation of `{name}` itself: only inherited ones are overridden"
                self._reporter.error("E0203", at, message)
            for base_component in bases:
                overridden = next((r for r in base_component.body.relations if r.name == relation), None)
                if overridden is not None and "overridable" not in overridden.qualifiers:
                    message = f"`{relation}` of `{base_component.type.name}` is not overridable"
                    hint = f"declare it so: .decl {relation}(...) overridable"
                    self._reporter.error("E0203", at, message, hint)
        if any(base is component for base in bases):
            self._reporter.error("E0203", component.type.at, f"the component `{name}` is derived from itself")
            return
        for inner in component.body.components:
            self._check(inner, binding)
        for instance in component.body.instances:
            self._check_type(instance.type, component, binding, instance.at)

    def _bases(self, component: Component) -> list[Component]:
        """The direct and indirect bases of a component.

        Raises _TooManyCopiesError."""
        bases: dict[int, Component] = {}
        level = [component]
        for _ in range(DEEPEST):
            nearer = {id(base): base for one in level for base in self._derived_from(one, {})}
            level = [base for key, base in nearer.items() if key not in bases]
            bases |= nearer
        if level:
            self._too_deep(component.type.at)
        return list(bases.values())

    def _check_type(self, type_: ComponentType, scope: Component | None, binding: Binding, at: int) -> None:
        if type_.name in binding:
            return
        component = self._component(scope, type_.name, {})
        if component is None:
            hint = partial(did_you_mean, type_.name, [c.type.name for c in self._module.components])
            self._reporter.error("E0201", at, f"unknown component `{type_.name}`", hint)
        elif len(component.type.parameters) != len(type_.parameters):
            wanted = counted(len(component.type.parameters), "parameter")
            message = f"the component `{type_.name}` has {wanted}, not {len(type_.parameters)}"
            self._reporter.error("E0302", at, message)

    # ---- Copies -----------------------------------------------------------------------------------------

    def _component(self, scope: Component | None, name: str, binding: Binding) -> Component | None:
        """The component with a name in a scope: the scope's own, one of a base component, or an outer one."""
        wanted = binding.get(name) or name
        waiting, seen = [scope], set[int]()
        while waiting:
            scope = waiting.pop()
            if id(scope) in seen:
                continue
            seen.add(id(scope))
            component = self._inside[id(scope)].get(wanted)
            if component is not None:
                return component
            if scope is not None:
                waiting += (self._around[id(scope)], *reversed(self._derived_from(scope, binding)))
        return None

    def _derived_from(self, component: Component, binding: Binding) -> list[Component]:
        """The components that one names as its bases."""
        key = id(component), frozenset(binding.items())
        if key not in self._parents:
            self._parents[key] = []  # for who asks meanwhile, in a circle
            around = self._around[id(component)]
            bases = (self._component(around, base.name, binding) for base in component.bases)
            self._parents[key] = [base for base in bases if base is not None]
        return self._parents[key]

    def _count(self, what: Module, orphans: Iterable[Clause] = ()) -> None:
        """Count copies. Raises _TooManyCopiesError."""
        clauses = sum(c.text.end - c.text.start for c in (*what.clauses, *orphans))
        columns = [relation.columns for relation in what.relations]
        columns += [declared.columns for declared in what.types]
        columns += [branch.columns for declared in what.types for branch in declared.branches]
        others = 1 + len(what.directives) + len(what.lattices)
        self._counted += clauses + 10 * (others + len(columns) + sum(map(len, columns)))
        if self._counted > _CHARACTERS:
            most = f"{_CHARACTERS >> 20} MiB"
            self._stop(f"the instances of components, up to this one, hold more than {most}", self._at)

    def _too_deep(self, at: int) -> NoReturn:
        self._stop(f"components are derived from one another, {DEEPEST} levels deep", at)

    def _stop(self, message: str, at: int) -> NoReturn:
        self._reporter.error("E0203", at, message)
        raise _TooManyCopiesError

    def _instance(
        self,
        instance: ComponentInstance,
        scope: Component | None,
        binding: Binding,
        overridden: frozenset[str],
        orphans: list[Clause],
        depth: int,
    ) -> Module:
        """The contents of an instance, under their full names."""
        contents = Module()
        component = self._component(scope, instance.type.name, binding)
        if component is None:
            what = f"the component `{instance.type.name}` is not known here"
            self._reporter.error("E0203", instance.at, what)
            return contents
        if not depth:
            self._stop(f"components have instances of one another, {DEEPEST} levels deep", instance.at)
        binding = _extended(binding, component.type.parameters, instance.type.parameters)
        for inner in component.body.instances:
            _add(contents, self._instance(inner, component, binding, overridden, orphans, depth - 1))
        self._collect(component, binding, contents, orphans, overridden, depth)
        self._count(contents, orphans)
        return _renamed(contents, instance.name, orphans)

    def _collect(
        self,
        component: Component,
        binding: Binding,
        contents: Module,
        orphans: list[Clause],
        overridden: frozenset[str],
        depth: int,
    ) -> None:
        """Add the declarations of a component and of its bases."""
        around = self._around[id(component)]
        for base in component.bases:
            parent = self._component(around, base.name, binding)
            if parent is None:
                continue
            if not depth:
                self._too_deep(base.at)
            bound = _extended(binding, parent.type.parameters, base.parameters)
            for inner in parent.body.instances:
                _add(contents, self._instance(inner, parent, bound, frozenset(), orphans, depth - 1))
            self._collect(
                parent, bound, contents, orphans, overridden | component.overrides.keys(), depth - 1
            )
        body = component.body
        self._count(body)
        contents.types += [_bound_type(t, binding) for t in body.types]
        contents.lattices += [x._replace(name=binding.get(x.name) or x.name) for x in body.lattices]
        for relation in body.relations:
            columns = tuple(_bound_column(column, binding) for column in relation.columns)
            contents.relations.append(relation._replace(columns=columns))
        contents.directives += body.directives
        declared = {relation.name for relation in contents.relations}
        for clause in body.clauses:
            if clause.head.name.partition(".")[0] in overridden:
                continue
            (contents.clauses if clause.head.name in declared else orphans).append(
                _bound_clause(clause, binding)
            )
        contents.clauses += [orphan for orphan in orphans if orphan.head.name in declared]
        orphans[:] = [orphan for orphan in orphans if orphan.head.name not in declared]


def _add(to: Module, other: Module) -> None:
    to.types += other.types
    to.lattices += other.lattices
    to.relations += other.relations
    to.directives += other.directives
    to.clauses += other.clauses


def _extended(binding: Binding, formal: tuple[str, ...], actual: tuple[str, ...]) -> Binding:
    return {**binding, **{f: binding.get(a) or a for f, a in zip(formal, actual, strict=False)}}


def _bound_column(column: ColumnDeclaration, names: Binding) -> ColumnDeclaration:
    return column._replace(type_name=names.get(column.type_name) or column.type_name)


def _bound_type(declared: TypeDeclaration, names: Binding) -> TypeDeclaration:
    """A type with other names for the types that it is made of."""
    return declared._replace(
        name=names.get(declared.name) or declared.name,
        names=tuple((names.get(name) or name, at) for name, at in declared.names),
        columns=tuple(_bound_column(column, names) for column in declared.columns),
        branches=tuple(
            branch._replace(
                name=names.get(branch.name) or branch.name,
                columns=tuple(_bound_column(column, names) for column in branch.columns),
            )
            for branch in declared.branches
        ),
    )


def _bound_clause(clause: Clause, names: Binding) -> Clause:
    return rewrite_clause(clause, lambda term: _bound_cast(term, names)) if names else clause


def _bound_cast(term: Term, names: Binding) -> Term:
    return (
        term._replace(type_name=names.get(term.type_name) or term.type_name)
        if isinstance(term, Cast)
        else term
    )


def _renamed(contents: Module, instance: str, orphans: list[Clause]) -> Module:
    """The contents of an instance, with the instance's name before its own names."""
    types = {t.name: f"{instance}.{t.name}" for t in contents.types}
    branches = {b.name: f"{instance}.{b.name}" for t in contents.types for b in t.branches}
    relations = {r.name: f"{instance}.{r.name}" for r in contents.relations}

    def change(term: Term) -> Term:
        if isinstance(term, Branch):
            return term._replace(name=branches.get(term.name, term.name))
        return _bound_cast(term, types)

    def atom(written: Atom) -> Atom:
        name = relations.get(written.name)
        return written if name is None else written._replace(name=name)

    def text(written: RuleText) -> RuleText:
        inside = f".{written.instance}" if written.instance else ""
        return written._replace(instance=instance + inside)

    def clause(written: Clause) -> Clause:
        new = rewrite_clause(written, change, atom)
        return new._replace(text=text(new.text))

    def relation(declared: RelationDeclaration) -> RelationDeclaration:
        columns = tuple(_bound_column(column, types) for column in declared.columns)
        return declared._replace(name=relations[declared.name], columns=columns)

    def type_(declared: TypeDeclaration) -> TypeDeclaration:
        new = _bound_type(declared, types)
        renamed = tuple(
            new_branch._replace(name=branches[old.name])
            for old, new_branch in zip(declared.branches, new.branches, strict=True)
        )
        return new._replace(branches=renamed)

    def lattice(declared: Lattice) -> Lattice:
        operators = tuple((name, rewrite_term(term, change), at) for name, term, at in declared.operators)
        return Lattice(types.get(declared.name, declared.name), operators, declared.at, text(declared.text))

    orphans[:] = [clause(orphan) for orphan in orphans]
    return Module(
        [type_(t) for t in contents.types],
        [lattice(x) for x in contents.lattices],
        [relation(r) for r in contents.relations],
        [d._replace(name=relations.get(d.name, d.name)) for d in contents.directives],
        [clause(c) for c in contents.clauses],
    )
