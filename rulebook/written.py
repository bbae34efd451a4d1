"""Rules as they are written: where facts about names stand."""

from __future__ import annotations

import re
from collections.abc import Mapping

_FACT = re.compile(r'(\w+)\("([^"]+)"[^:]*?\)\s*\.')

Place = tuple[str, int, str]  # file, line, what is written there


def fact_places(texts: Mapping[str, str]) -> dict[tuple[str, str], Place]:
    """Facts about names in texts by file: (relation, name) -> where the first one stands."""
    found: dict[tuple[str, str], Place] = {}
    for file, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            for match in _FACT.finditer(line.partition("//")[0]) if ":-" not in line else ():
                found.setdefault((match[1], match[2]), (file, number, match[0]))
    return found
