"""Questions about collectives are answered by the plan, as the program that is written would answer them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import shardlog
from shardlog.explanations.partitioned import Partitioned
from shardlog.explanations.questions.collective import Asked
from shardlog.explanations.questions.conflicts import conflicts
from shardlog.runs.choice import ProgramChoice
from shardlog.session import Session

from ...partition.generated.random_programs import write
from ...support import models
from ...support.drawing import by_day, in_turn
from ...support.programs import PROGRAMS, lowered

CHOICES = (ProgramChoice(keep_shardings=True), ProgramChoice())
# Their plans do not say which permutations become one, or whether something is sent twice.
WRITTEN = {"approx_top_k", "convolution", "top_k"}


def answers(session: Session, program: Partitioned) -> Sequence[Any]:
    """What is said of the collectives of a program, of every fourth one why it is there."""
    explainer = session.programs.explainer
    asked = Asked(explainer, program)
    moved = [asked.moved(n).as_json() for n in range(0, len(program.movements), 4)]
    return [program.collectives, conflicts(explainer, program), moved]


def assert_as_written(module: Any) -> list[bool]:
    """The plan's answers are those of the program; returns whether the plan had them, by choice."""
    session, planned = shardlog.run(module), list[bool]()
    for choice in CHOICES:
        program, written = session.programs.asked(choice), session.programs.made(choice)
        written.sends = None
        assert answers(session, program) == answers(session, written)
        planned.append("written" not in vars(program))
    return planned


@pytest.mark.parametrize("name", in_turn(0, PROGRAMS))
def test_answers_are_those_of_the_program(name: str) -> None:
    assert all(assert_as_written(lowered(name, 3))) or name in WRITTEN


@pytest.mark.parametrize("scan", by_day([True], [False, True]))
def test_answers_about_a_train_step_need_no_program(scan: bool) -> None:
    assert all(assert_as_written(models.text("transformer", depth=1, train=True, scan=scan)))


@pytest.mark.parametrize("number", by_day(range(8), range(16)))
def test_answers_about_random_programs(number: int) -> None:
    assert_as_written(write(7, number)[0].text(True))


def test_conflicts_write_no_program() -> None:
    session = shardlog.run(models.text("transformer", depth=1))
    assert session.conflicts()
    program = session.programs.asked(ProgramChoice())
    assert "written" not in vars(program)
    assert session.partition() is program
    assert "written" in vars(program)
