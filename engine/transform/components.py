"""Components: each ``.init`` becomes a copy of what the component, and those it is derived from, hold.

The copy of a relation, type or branch ``name`` in the instance ``i`` is called ``i.name``. Rules of relations
that are declared around the component belong to those.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ..language.diagnostics import Reporter, counted, did_you_mean
from ..language.syntax import (
    Atom,
    Branch,
    Cast,
    Clause,
    ColumnDeclaration,
    Component,
    ComponentType,
    Instance,
    Lattice,
    Module,
    RelationDeclaration,
    Term,
    Text,
    TypeDeclaration,
)
from ..language.walk import rewrite_clause, rewrite_term

DEEPEST = 100  # instances within instances

Binding = Mapping[str, str]


def instantiate(module: Module, reporter: Reporter) -> bool:
    """Replace the components of a module and their instances by what they stand for. False after errors."""
    errors = len(reporter)
    if module.components or module.instances:
        _Instantiation(module, reporter).run()
    return len(reporter) == errors


class _Instantiation:
    def __init__(self, module: Module, reporter: Reporter) -> None:
        self._module, self._reporter = module, reporter
        self._around: dict[int, Component | None] = {}
        self._note(module.components, None)

    def _note(self, components: list[Component], around: Component | None) -> None:
        """Note what each component stands in."""
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
        """Report components that are not there, and overrides of what cannot be overridden."""
        name, around = component.type.name, self._around[id(component)]
        binding = {**binding, **dict.fromkeys(component.type.parameters, "")}
        for base in component.bases:
            self._check_type(base, around, binding, base.at)
        bases = self._bases(component, around)
        for relation, at in component.overrides.items():
            own = next((r for r in component.body.relations if r.name == relation), None)
            if own is not None:
                message = f"`{relation}` is a relation of `{name}` itself: only inherited ones are overridden"
                self._reporter.error("E0203", at, message)
            for base_component in bases:
                found = next((r for r in base_component.body.relations if r.name == relation), None)
                if found is not None and "overridable" not in found.qualifiers:
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

    def _bases(self, component: Component, around: Component | None) -> list[Component]:
        found: list[Component] = []
        waiting = [component]
        while waiting:
            for base in waiting.pop().bases:
                it = self._component(around, base.name, {})
                if it is not None and not any(it is other for other in found):
                    found.append(it)
                    waiting.append(it)
        return found

    def _check_type(self, type_: ComponentType, scope: Component | None, binding: Binding, at: int) -> None:
        if type_.name in binding:
            return
        component = self._component(scope, type_.name, binding)
        if component is None:
            hint = partial(did_you_mean, type_.name, [c.type.name for c in self._module.components])
            self._reporter.error("E0201", at, f"unknown component `{type_.name}`", hint)
        elif len(component.type.parameters) != len(type_.parameters):
            wanted = counted(len(component.type.parameters), "parameter")
            message = f"the component `{type_.name}` has {wanted}, not {len(type_.parameters)}"
            self._reporter.error("E0302", at, message)

    # ---- Copies -----------------------------------------------------------------------------------------

    def _component(
        self, scope: Component | None, name: str, binding: Binding, depth: int = 0
    ) -> Component | None:
        """The component that a name means in a scope: one of its own, of what it is derived from, or
        around."""
        wanted = binding.get(name) or name
        while scope is not None and depth < DEEPEST:
            for component in scope.body.components:
                if component.type.name == wanted:
                    return component
            around = self._around[id(scope)]
            for base in scope.bases:
                found = self._component(around, base.name, binding, depth + 1)
                if found is scope:
                    return None
                inherited = found and self._component(found, name, binding, depth + 1)
                if inherited is not None:
                    return inherited
            scope = around
        return next((c for c in self._module.components if c.type.name == wanted), None)

    def _instance(
        self,
        instance: Instance,
        scope: Component | None,
        binding: Binding,
        overridden: frozenset[str],
        orphans: list[Clause],
        depth: int,
    ) -> Module:
        """What an instance holds, under its full names."""
        found = Module()
        component = self._component(scope, instance.type.name, binding)
        if component is None or not depth:
            what = f"the component `{instance.type.name}` is not known here"
            deep = f"components have instances of one another, {DEEPEST} levels deep"
            self._reporter.error("E0203", instance.at, what if depth else deep)
            return found
        binding = _extended(binding, component.type.parameters, instance.type.parameters)
        for inner in component.body.instances:
            _add(found, self._instance(inner, component, binding, overridden, orphans, depth - 1))
        self._collect(component, binding, found, orphans, overridden, depth)
        return _renamed(found, instance.name, orphans)

    def _collect(
        self,
        component: Component,
        binding: Binding,
        found: Module,
        orphans: list[Clause],
        overridden: frozenset[str],
        depth: int,
    ) -> None:
        """Add what a component and those that it is derived from declare."""
        around = self._around[id(component)]
        for base in component.bases:
            parent = self._component(around, base.name, binding)
            if parent is None:
                continue
            bound = _extended(binding, parent.type.parameters, base.parameters)
            for inner in parent.body.instances:
                _add(found, self._instance(inner, parent, bound, frozenset(), orphans, depth - 1))
            self._collect(parent, bound, found, orphans, overridden | component.overrides.keys(), depth)
        body = component.body
        found.types += [_bound_type(t, binding) for t in body.types]
        found.lattices += [x._replace(name=binding.get(x.name) or x.name) for x in body.lattices]
        for relation in body.relations:
            columns = tuple(_bound_column(column, binding) for column in relation.columns)
            found.relations.append(relation._replace(columns=columns))
        found.directives += body.directives
        known = {relation.name for relation in found.relations}
        for clause in body.clauses:
            if clause.head.name.partition(".")[0] in overridden:
                continue
            (found.clauses if clause.head.name in known else orphans).append(_bound_clause(clause, binding))
        for orphan in [orphan for orphan in orphans if orphan.head.name in known]:
            found.clauses.append(orphan)
            orphans.remove(orphan)


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


def _renamed(found: Module, instance: str, orphans: list[Clause]) -> Module:
    """What an instance holds, with the instance's name before its own names."""
    types = {t.name: f"{instance}.{t.name}" for t in found.types}
    branches = {b.name: f"{instance}.{b.name}" for t in found.types for b in t.branches}
    relations = {r.name: f"{instance}.{r.name}" for r in found.relations}

    def change(term: Term) -> Term:
        if isinstance(term, Branch):
            return term._replace(name=branches.get(term.name, term.name))
        return _bound_cast(term, types)

    def atom(written: Atom) -> Atom:
        name = relations.get(written.name)
        return written if name is None else written._replace(name=name)

    def text(written: Text) -> Text:
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
        [type_(t) for t in found.types],
        [lattice(x) for x in found.lattices],
        [relation(r) for r in found.relations],
        [d._replace(name=relations.get(d.name, d.name)) for d in found.directives],
        [clause(c) for c in found.clauses],
    )
