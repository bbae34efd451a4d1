"""Explanations as HTML for notebooks: no scripts, no style sheets, readable in dark mode."""

from __future__ import annotations

from html import escape

from .explanation import Explanation, Step
from .text import annotation_text, proof_lines, step_lines, why_title


def text_html(text: str) -> str:
    """Text as it is."""
    return f"<pre>{escape(text)}</pre>"


def why_html(explanation: Explanation) -> str:
    """The chain of an explanation; each step opens to its proof."""
    lines = [f"<div><pre>{escape(why_title(explanation))}</pre>", *map(_step, explanation.steps)]
    lines.append(f"<pre>{escape(annotation_text(explanation.origin))}</pre>")
    others = [annotation_text(annotation, said=True) for annotation in explanation.needs[1:]]
    if others:
        rows = "".join(f"<li><code>{escape(other)}</code></li>" for other in others)
        lines.append(f"which rests on the annotations of these too:<ul>{rows}</ul>")
    return "\n".join([*lines, "</div>"])


def _step(step: Step) -> str:
    first, *rest = step_lines(step)
    proof = escape("\n".join(proof_lines(step.proof)))
    said = escape("\n".join(line.strip() for line in rest))
    return (
        f"<details><summary><code>{escape(first.strip())}</code></summary><pre>{said}</pre>"
        f"<details><summary>proof</summary><pre>{proof}</pre></details></details>"
    )
