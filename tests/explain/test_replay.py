"""Explanations of JAX programs: their proofs hold, and their annotations alone give the axis again."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.explain.replay import again, replay
from shardlog.explain.why import Explainer

from .. import models

SAMPLE = 12  # values of each program


@pytest.mark.parametrize("scan", [False, True], ids=["unrolled", "scan"])
@pytest.mark.parametrize("name", models.MODELS)
def test_models(name: str, scan: bool) -> None:
    if scan and name == "recommender":
        pytest.skip("it has no layers to scan")
    explainer = Explainer(shardlog.run(models.text(name, train=name != "decode", scan=scan)))
    values = explainer.values.all()
    derived = again_derived = 0
    for value in values[:: max(1, len(values) // SAMPLE)]:
        for explanation in explainer.why(value.name):
            explainer.check_proofs(explanation)
            derived += 1
            again_derived += replay(explainer.result, explanation).holds
    assert derived > 0
    assert again_derived == derived


def test_without_annotations_nothing_is_derived() -> None:
    result = shardlog.run(models.text("transformer"))
    assert not any(
        result.fixpoint.agenda.facts(int(c)) for c in set(again(result, ()).outcome.contents.tolist())
    )
