"""The fuzzer finds nothing; and it would find what goes wrong."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ..support.drawing import SEED
from . import front_end
from .fuzz import Finding, fuzz
from .seeds import Seeds
from .worker import Command

MODULE = b"func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"
FEW = Seeds(*((MODULE,),) * len(Seeds.__dataclass_fields__))


# By day so many cases, the same each time; by night what fits into some minutes.
NIGHT = pytest.param(None, marks=[pytest.mark.nightly, pytest.mark.slow], id="night")


@pytest.mark.parametrize("count", [60, NIGHT])
def test_nothing_goes_wrong(count: int | None, tmp_path: Path) -> None:
    check_fuzzed(count, tmp_path, "python -m shardlog.tests.fuzz")


@pytest.mark.parametrize("count", [125, NIGHT])
def test_the_front_end_takes_any_text(count: int | None, tmp_path: Path) -> None:
    cases = partial(front_end.case, front_end.programs(), SEED)
    check_fuzzed(
        count, tmp_path, "python -m shardlog.tests.fuzz.front_end", command=front_end.run, cases=cases
    )


def check_fuzzed(count: int | None, keep: Path, again: str, **options: Any) -> None:
    """So many cases are right; or all that fit into ten minutes."""
    told: list[str] = []
    limits: dict[str, Any] = {"minutes": 10, "jobs": os.cpu_count() or 1}
    if count is not None:
        limits = {"minutes": 600, "jobs": 1, "last": count - 1}
    done, found = fuzz(seed=SEED, keep=keep, tell=told.append, **limits, **options)
    assert not found, "\n".join([f"again with: {again} --seed {SEED} --case NUMBER", *told])
    assert done == count or (count is None and done)


def raises(arguments: list[str]) -> int:
    raise KeyError(arguments[0])


def shows_a_traceback(arguments: list[str]) -> int:
    sys.stderr.write("Traceback (most recent call last):\n  ...\nKeyError: 1\n")
    return 2


def crashes(arguments: list[str]) -> int:
    os.kill(os.getpid(), signal.SIGABRT)
    return 0


def hangs(arguments: list[str]) -> int:
    while True:
        pass


def says_nothing(arguments: list[str]) -> int:
    return 2


def touches_an_input(arguments: list[str]) -> int:
    Path("module").write_bytes(b"")
    return 0


def leaves_a_file(arguments: list[str]) -> int:
    Path("rest.partial").touch()
    return 0


def writes_half_an_output(arguments: list[str]) -> int:
    for name in ("out.mlir", "out.run"):
        Path(name).touch()
    print("an error", file=sys.stderr)
    return 2


def is_right(arguments: list[str]) -> int:
    return 0


@pytest.mark.parametrize(
    ("command", "kind", "says"),
    [
        (raises, "traceback", "KeyError"),
        (shows_a_traceback, "traceback", "KeyError"),
        (crashes, "crash", "SIGABRT"),
        (hangs, "hang", "in hangs"),
        (says_nothing, "message", ": none"),
        (touches_an_input, "files", ": module is changed"),
        (leaves_a_file, "files", ": left over: rest.partial"),
        (writes_half_an_output, "files", ": left over: out"),
    ],
)
def test_what_goes_wrong_is_found(command: Command, kind: str, says: str, tmp_path: Path) -> None:
    listed = findings(command, tmp_path)
    assert {finding.kind for finding in listed} == {kind}
    assert says in listed[0].frame + listed[0].detail
    kept = [(folder / "finding.txt").read_text(errors="replace") for folder in tmp_path.iterdir()]
    assert sum(text.startswith(f"seed 0, case {listed[0].number}\nshardlog ") for text in kept) == 1


def test_nothing_is_found_where_nothing_is_wrong(tmp_path: Path) -> None:
    assert findings(is_right, tmp_path) == []


def findings(command: Command, keep: Path) -> list[Finding]:
    """The findings in four cases for a command."""
    told: list[str] = []
    _, found = fuzz(
        seed=0,
        minutes=10,
        keep=keep,
        jobs=1,
        last=3,
        tell=told.append,
        seeds=FEW,
        command=command,
        hang=0.3,
    )
    assert len(told) == len(found)
    return found
