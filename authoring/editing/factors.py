"""The names in a text of einsum notation: the factors of each line, and what stands in facts between them."""

from __future__ import annotations

import re
from dataclasses import replace

from ...program.factors import MARKED
from ...rulebook.notations.einsum import FACTS, NAME
from .names import Name, RuleFileNames, names_of

KINDS = (*MARKED, "blocked_propagation")
_WORD = re.compile(r"\.\.\.\d*|[A-Za-z]\w*")


def factors_of(text: str) -> RuleFileNames:
    """The names of a text: ops, factors, and the relations of facts."""
    names = RuleFileNames()
    start, scope = 0, -1
    for line in text.split("\n"):
        if FACTS.fullmatch(line):
            for name in names_of(line).in_order:
                names.in_order.append(replace(name, start=name.start + start, end=name.end + start))
        elif line.strip() and not line.startswith("//"):
            begins = not line[0].isspace()
            scope += begins
            op = NAME.match(line) if begins else None
            if op is not None:
                names.in_order.append(Name("op", op[0][:-1].strip(), start, start + len(op[0][:-1].rstrip())))
            _line(names, line, start, op.end() if op else 0, scope)
        if scope == len(names.statements):
            names.statements.append((start, start + len(line)))
        elif names.statements and line[:1].isspace():
            names.statements[-1] = (names.statements[-1][0], start + len(line))
        start += len(line) + 1
    return names


def _line(names: RuleFileNames, line: str, start: int, begin: int, scope: int) -> None:
    seen = {name.text for name in names.in_order if name.kind == "factor" and name.scope == scope}
    for match in _WORD.finditer(line, begin):
        if match[0] in KINDS and line[match.end() :].lstrip().startswith("="):
            continue
        place = (start + match.start(), start + match.end())
        names.in_order.append(Name("factor", match[0], *place, match[0] not in seen, scope))
        seen.add(match[0])
