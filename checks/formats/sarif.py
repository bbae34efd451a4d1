"""A verdict in SARIF 2.1.0, which code scanning reads: https://docs.oasis-open.org/sarif/sarif/v2.1.0"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...version import __version__
from ..verdict import Problem, Verdict

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def written(verdict: Verdict) -> str:
    """One run of the tool, with a rule for each check and a result for each problem."""
    run = {
        "tool": {
            "driver": {
                "name": "shardlog",
                "version": __version__,
                "rules": [{"id": name} for name in verdict.checks],
            }
        },
        "results": [_result(problem, verdict) for problem in verdict.problems],
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _result(problem: Problem, verdict: Verdict) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": problem.check,
        "ruleIndex": verdict.checks.index(problem.check),
        "level": problem.level,
        "message": {"text": problem.message},
    }
    file, line = problem.line or (verdict.name, 0)
    place: dict[str, Any] = {
        "artifactLocation": {"uri": Path(file).as_uri() if Path(file).is_absolute() else quote(file)}
    }
    if line:
        place["region"] = {"startLine": line}
    location: dict[str, Any] = {"physicalLocation": place}
    if problem.stack:
        location["logicalLocations"] = [{"fullyQualifiedName": problem.stack}]
    return result | {"locations": [location]}
