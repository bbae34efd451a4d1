"""Rules as written: their clauses, and the places of facts about names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..engine.language.diagnostics import Reporter
from ..engine.language.parser import parse
from ..engine.language.sources import Sources
from ..engine.language.syntax import Module

_FACT = re.compile(r'(\w+)\("([^"]+)"[^:]*?\)\s*\.')

SourceLine = tuple[str, int, str]  # file, line, what is written there


@dataclass(frozen=True)
class RuleTexts:
    """Clauses and declarations, and the sources in which they have positions."""

    sources: Sources
    module: Module


def read(texts: Mapping[str, str]) -> RuleTexts:
    """Datalog by file, which has been checked. Files that it includes are not read: ``module.broken`` has
    them."""
    sources, module = Sources(), Module()
    for file, text in texts.items():
        start = sources.add(file, text)
        parse(text, start, module, Reporter(sources), lambda path, at, into: module.broken.add(path))
    return RuleTexts(sources, module)


def fact_places(texts: Mapping[str, str]) -> dict[tuple[str, str], SourceLine]:
    """Facts about names in texts by file: (relation, name) -> where the first one stands."""
    places: dict[tuple[str, str], SourceLine] = {}
    for file, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            for match in _FACT.finditer(line.partition("//")[0]) if ":-" not in line else ():
                places.setdefault((match[1], match[2]), (file, number, match[0]))
    return places
