"""Two minutes of the fuzzer find nothing; and it would find what goes wrong."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path

import pytest

from . import front_end
from .fuzz import Finding, fuzz
from .seeds import Seeds
from .worker import Command

MODULE = b"func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"
FEW = Seeds(*((MODULE,),) * len(Seeds.__dataclass_fields__))


@pytest.mark.slow
def test_nothing_goes_wrong(tmp_path: Path) -> None:
    told: list[str] = []
    done, found = fuzz(seed=0, minutes=2, keep=tmp_path, jobs=os.cpu_count() or 1, tell=told.append)
    assert not found, "\n".join(["again with: python -m shardlog.tests.fuzz --seed 0 --case NUMBER", *told])
    assert done


@pytest.mark.slow
def test_the_front_end_takes_any_text(tmp_path: Path) -> None:
    told: list[str] = []
    done, found = fuzz(
        seed=0,
        minutes=1,
        keep=tmp_path,
        jobs=os.cpu_count() or 1,
        tell=told.append,
        command=front_end.run,
        cases=partial(front_end.case, front_end.programs(), 0),
    )
    again = "again with: python -m shardlog.tests.fuzz.front_end --seed 0 --case NUMBER"
    assert not found, "\n".join([again, *told])
    assert done


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
    found = findings(command, tmp_path)
    assert {finding.kind for finding in found} == {kind}
    assert says in found[0].frame + found[0].detail
    kept = [(folder / "finding.txt").read_text(errors="replace") for folder in tmp_path.iterdir()]
    assert sum(text.startswith(f"seed 0, case {found[0].number}\nshardlog ") for text in kept) == 1


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
        hang=1.0,
    )
    assert len(told) == len(found)
    return found
