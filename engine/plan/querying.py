"""Queries to a program: the body of a rule, answered from complete relations and by the rules of the
others."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TypeVar

from ..language.diagnostics import DatalogError, Diagnostic
from ..transform.functors import is_helper
from .cache import Request
from .compiler import compile_goal, written_clauses
from .plan import QueryPlan

_T = TypeVar("_T")
QUERY = "query"  # the file of the body in diagnostics


def compile_query(
    request: Request, body: str, relations: Collection[str], complete: Collection[str], given: Collection[str]
) -> tuple[QueryPlan, list[tuple[str, str]]]:
    """A plan whose only output holds the solutions of ``body``, with a column for each of its variables. Also
    the names of the relations that it uses unchanged, which are among the ``complete`` ones.

    ``relations`` are all relations of the program, ``given`` the relations that facts were added to. If the
    body is a disjunction, the columns are the variables of all alternatives. Raises DatalogError; its places
    are in the body, in a file called "query".
    """
    body = body.strip().removesuffix(".").rstrip()
    answer = "answer"
    while answer in relations:
        answer += "_"
    written = _in_query(lambda: written_clauses(_asking(request, answer, {}, body)))
    for source, clause in written.clauses:
        if source.file == QUERY and clause.head.name != answer:
            code, message = "E0102", "a query is the body of one rule: nothing may follow it"
            if is_helper(clause.head.name):
                code, message = "E0105", "a query calls no functors: give their values a relation"
            raise DatalogError([Diagnostic(QUERY, max(1, source.line - 1), 1, code, message)])
    kinds_by_clause = [
        kinds
        for kinds, (_, clause) in zip(written.kinds, written.clauses, strict=True)
        if clause.head.name == answer
    ]
    columns = {
        n: kind
        for n, kind in kinds_by_clause[0].items()
        if "@" not in n and all(n in kinds for kinds in kinds_by_clause)
    }
    full = {*complete, *given}
    plan = _in_query(lambda: compile_goal(_asking(request, answer, columns, body), answer, full))
    names = [relation.name for relation in plan.relations]
    shared = [name for name in names if name in complete]
    given_numbers = {names.index(name) for name in shared}
    plan = replace(
        plan,
        relations=tuple(replace(relation, output=relation.name == answer) for relation in plan.relations),
        strata=tuple(stratum for stratum in plan.strata if not given_numbers.issuperset(stratum.relations)),
        facts=tuple(fact for fact in plan.facts if fact[0] not in given_numbers),
    )
    return plan, [(name, name) for name in shared]


def _asking(request: Request, answer: str, columns: dict[str, str], body: str) -> Request:
    """The program with a rule for the answer."""
    declared = ", ".join(f"{name}: {kind}" for name, kind in columns.items())
    texts = {
        **request.texts,
        "answer": f".decl {answer}({declared})\n.output {answer}\n",
        QUERY: f"{answer}({', '.join(columns)}) :-\n{body}.\n",
    }
    return replace(request, texts=texts, updates=False)


def _in_query(call: Callable[[], _T]) -> _T:
    """Errors have the lines of the query, which stands below a head."""
    try:
        return call()
    except DatalogError as error:
        raise DatalogError(
            (replace(d, line=max(1, d.line - 1)) if d.file == QUERY else d for d in error.diagnostics),
            error.more,
        ) from None
