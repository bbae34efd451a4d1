"""Explanations of JAX programs: their proofs hold, and their annotations alone give the axes again."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.explanations.answers.why import Explanation
from shardlog.explanations.questions.replay import again, replay

from ...support import models
from ...support.drawing import by_day

MOST = 600  # tensors of a program that are looked at, evenly spread
CHECKED = 12  # of these whose proofs are checked


@pytest.mark.parametrize(("name", "scan"), by_day([("resnet", False), ("lstm", True)], models.LAYERED))
def test_models(name: str, scan: bool) -> None:
    session = shardlog.run(models.text(name, train=name != "decode", scan=scan))
    explainer = session.explainer
    values = explainer.values.all()
    answers = [explainer.why(value.name) for value in values[:: 1 + len(values) // MOST]]
    for explanations in answers[:: 1 + len(answers) // CHECKED]:
        for explanation in explanations:
            explainer.check_proofs(explanation)
    by_need: dict[frozenset[int], list[Explanation]] = {}
    for explanation in (e for explanations in answers for e in explanations):
        by_need.setdefault(frozenset(a.cell for a in explanation.needs), []).append(explanation)
    assert by_need
    for needed in by_need.values():
        # All that rest on the same annotations are derived again by one run.
        assert replay(session.result, needed[0]).holds
        fixpoint = again(session.result, {a.cell for a in needed[0].needs})
        for explanation in needed:
            cell = int(session.result.program.cells[explanation.place])
            held = fixpoint.agenda.facts(int(fixpoint.outcome.contents[cell]))["sharded"]
            assert set(explanation.atoms) <= {x for d, _, x in held if d == explanation.site.dim}


def test_without_annotations_nothing_is_derived() -> None:
    result = shardlog.run(models.text("transformer"))
    assert not any(
        result.result.fixpoint.agenda.facts(int(c))
        for c in set(again(result.result, ()).outcome.contents.tolist())
    )
