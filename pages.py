"""HTML pages made from templates, by Jinja: where it is missing the import says what to install."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .errors import from_extra

with from_extra("report", "Jinja"):
    from jinja2 import Environment, FileSystemLoader, StrictUndefined


def page_of(template: Path, **values: Any) -> str:
    """The page that a template makes of values and functions, which it names; texts are escaped. What it
    includes stands beside it."""
    environment = Environment(
        loader=FileSystemLoader(template.parent, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template.name).render(values)
