"""A verdict as JUnit's XML: a test for each check, which fails with its errors."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..verdict import Problem, Verdict

_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def written(verdict: Verdict) -> str:
    """A suite for the module."""
    failed = {problem.check for problem in verdict.errors}
    suite = Element("testsuite", name="shardlog", tests=str(len(verdict.checks)), failures=str(len(failed)))
    for name in verdict.checks:
        case = SubElement(suite, "testcase", classname=_text(verdict.name), name=name)
        problems = [problem for problem in verdict.problems if problem.check == name]
        errors = [problem for problem in problems if problem.level == "error"]
        warnings = [problem for problem in problems if problem.level != "error"]
        if errors:
            failure = SubElement(case, "failure", message=_text(f"{errors[0].what}: {errors[0].sentence}"))
            failure.text = _listed(errors)
        if warnings:
            SubElement(case, "system-out").text = _listed(warnings)
    suites = Element("testsuites")
    suites.append(suite)
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _listed(problems: list[Problem]) -> str:
    return _text("\n\n".join(p.placed for p in problems))


def _text(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return _NOT_IN_XML.sub("�", text)
