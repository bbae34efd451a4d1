"""Random modules: proofs hold, annotations alone give the axis again, what is missing has a reason."""

from __future__ import annotations

from collections.abc import Iterator

import shardlog
from hypothesis import Phase, given, note
from hypothesis import strategies as st
from shardlog.errors import ShardlogError
from shardlog.explanations.answers.why_not import WhyNot
from shardlog.explanations.questions.replay import replay
from shardlog.explanations.questions.why import Explainer
from shardlog.explanations.questions.why_not import why_not
from shardlog.runs.options import STRATEGIES

from ...support.drawing import drawing
from ...support.generators.random_modules import modules


def missing(result: shardlog.Session, value: str, rank: int) -> Iterator[WhyNot]:
    axes = sorted({atom.axis for atom in result.result.program.shardings.meshes.atoms})
    for dim in range(rank):
        for axis in axes[:2]:
            try:
                yield from why_not(result.explainer, value, dim, axis)
            except ShardlogError as error:  # because it is sharded on the axis
                assert "is sharded on" in error.message


def test_explanations() -> None:
    """The annotations that an explanation names are nearly always enough: now and then the order counts too,
    in which tensors got their axes."""
    enough: list[bool] = []

    @drawing(16, phases=[Phase.generate])
    @given(modules(), st.sampled_from(STRATEGIES))
    def explained(text: str, strategy: str) -> None:
        note(f"strategy {strategy}\n{text}")
        result = shardlog.run(text, strategy=strategy)
        explainer = Explainer(result.record)
        for value in explainer.values.all()[::3]:
            for explanation in explainer.why(value.name):
                explainer.check_proofs(explanation)
                enough.append(replay(result.result, explanation).holds)
                assert all(loss.sentence and loss.rule for step in explanation.steps for loss in step.lost)
            for absent in missing(result, value.name, len(value.shape)):
                assert all(stop.reasons for stop in absent.stops)
                reasons = [*absent.here, *(reason for stop in absent.stops for reason in stop.reasons)]
                assert all(reason.sentence for reason in reasons)
                assert all(reason.before.reasons for reason in reasons if reason.before)
        assert all(conflict.bytes > 0 for conflict in result.conflicts())

    explained()
    assert enough.count(False) < 0.05 * len(enough)
