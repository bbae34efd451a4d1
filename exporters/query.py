"""Ad-hoc rules over the relations of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..engine import load
from ..engine.syntax import Atom, Variable
from .relations import SCHEMA

if TYPE_CHECKING:
    from ..api import Result


def query(result: Result, body: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The solutions of a rule body: names of its variables in order of appearance, and sorted rows.

    Raises DatalogError where the body is not right.
    """
    declarations = "\n".join(
        f".decl {name}({', '.join(f'{column}: {type_}' for column, type_ in columns)})\n.input {name}"
        for name, columns in SCHEMA.items()
    )
    variables = _variables(body)
    head = ", ".join(f"{name}: {type_}" for name, type_ in variables.items())
    answer = f".decl answer({head})\n.output answer\n"
    text = body.strip().removesuffix(".")
    program = load(texts={"relations": declarations, "<query>": f"{answer}answer({', '.join(variables)}) :-\n{text}.\n"})
    return list(variables), program.evaluate(result.facts)["answer"]
