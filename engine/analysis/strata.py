"""Stratification: the order of relations, and whether negation and aggregates allow one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ..language.diagnostics import Reporter
from ..language.syntax import Aggregate, Atom, Branch, Call, Cast, Clause, Literal, Negation, Record, Term
from ..language.walk import terms


@dataclass(frozen=True)
class RelationUse:
    """A clause uses ``relation`` at position ``at``; ``strict``: under a negation or in an aggregate."""

    relation: str
    strict: str  # "", "negation" or "aggregate"
    at: int


def uses(body: Iterable[Literal], strict: str = "") -> list[RelationUse]:
    """Every relation that a body uses."""
    listed: list[RelationUse] = []
    for literal in body:
        if isinstance(literal, Atom):
            listed.append(RelationUse(literal.name, strict, literal.at))
        elif isinstance(literal, Negation):
            listed.append(RelationUse(literal.atom.name, strict or "negation", literal.at))
        for term in terms(literal):
            listed += _uses_in_term(term)
    return listed


def _uses_in_term(term: Term) -> list[RelationUse]:
    if isinstance(term, Aggregate):
        inner = [] if term.target is None else _uses_in_term(term.target)
        return uses(term.body, "aggregate") + inner
    if isinstance(term, Call | Record | Branch):
        return [use for arg in term.args for use in _uses_in_term(arg)]
    return _uses_in_term(term.value) if isinstance(term, Cast) else []


def clause_uses(clause: Clause) -> list[RelationUse]:
    """Every relation that a clause's body, or an aggregate in its head, uses."""
    return uses(clause.body) + [use for term in clause.head.args for use in _uses_in_term(term)]


def stratify(relations: Sequence[str], clauses: Iterable[Clause], reporter: Reporter) -> list[list[str]]:
    """The relations in groups (strongly connected components), each after all groups that it uses.

    A relation that notes the rounds of another one is in the group of that one. Reports E0403 for every
    negation or aggregate over a relation of its own group. The order depends on the order of declarations and
    clauses only.
    """
    clauses = list(clauses)
    uses_of: dict[str, list[RelationUse]] = {name: [] for name in relations}
    for clause in clauses:
        uses_of[clause.head.name] += clause_uses(clause)
    graph = {name: list(dict.fromkeys(use.relation for use in uses_of[name])) for name in relations}
    groups = components(graph)
    group_of = {name: i for i, group in enumerate(groups) for name in group}
    for name in relations:
        for use in uses_of[name]:
            if use.strict and group_of[use.relation] == group_of[name]:
                hint = "break the cycle: compute one of them from relations that do not depend on it"
                reporter.error("E0403", use.at, partial(_cycle, name, use, graph, group_of), hint)
    noted = {clause.head.name: clause_uses(clause)[0] for clause in clauses if clause.notes}
    for name, use in noted.items():
        _add_noting(name, use, groups, group_of, reporter)
    return groups


def _add_noting(
    name: str, noted: RelationUse, groups: list[list[str]], group_of: Mapping[str, int], reporter: Reporter
) -> None:
    """Move a relation that notes rounds into the group of the relation whose rounds these are."""
    if group_of[name] == group_of[noted.relation]:
        reporter.error("E0403", noted.at, f"`{noted.relation}` depends on `{name}`, which notes its rounds")
        return
    groups[group_of[name]].remove(name)
    groups[group_of[noted.relation]].append(name)


def united(groups: Sequence[Sequence[str]], together: Iterable[Sequence[str]]) -> list[list[str]]:
    """The groups, but names that belong ``together`` in one, where the last of them is."""
    joined = [list(group) for group in groups]
    for names in together:
        last = max(i for i, group in enumerate(joined) if not set(names).isdisjoint(group))
        joined = [[name for name in group if name not in names] for group in joined]
        joined[last] += names
    return joined


def _cycle(
    name: str, use: RelationUse, graph: Mapping[str, Sequence[str]], group_of: Mapping[str, int]
) -> str:
    """Why `name` can be computed neither before nor after its dependencies."""
    what = "the negation of" if use.strict == "negation" else "an aggregate over"
    why = f"`{name}` depends on {what} "
    if use.relation == name:
        return f"{why}itself"
    cycle = " -> ".join([name, *_path(graph, use.relation, name, group_of)])
    return f"{why}`{use.relation}`, which depends on `{name}`: {cycle}"


def components(graph: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Strongly connected components, each after all that it leads to (Tarjan 1972, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    result: list[list[str]] = []
    order = {name: i for i, name in enumerate(graph)}
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(graph[successor])))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = [stack.pop()]
                    while group[-1] != node:
                        group.append(stack.pop())
                    on_stack.difference_update(group)
                    result.append(sorted(group, key=order.__getitem__))
    return result


def _path(graph: Mapping[str, Sequence[str]], start: str, end: str, group_of: Mapping[str, int]) -> list[str]:
    """A shortest path from ``start`` to ``end`` within their group, both included."""
    before: dict[str, str] = {start: ""}
    todo = [start]
    for node in todo:
        if node == end:
            break
        for successor in graph[node]:
            if successor not in before and group_of[successor] == group_of[end]:
                before[successor] = node
                todo.append(successor)
    path = [end]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]
