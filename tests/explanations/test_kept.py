"""Conflicts of saved runs are kept for later processes: the same as are found, without the run again."""

from __future__ import annotations

from pathlib import Path

import pytest
import shardlog
from shardlog.cli import main
from shardlog.cost.machine import MACHINES
from shardlog.explanations import kept
from shardlog.session import Session

MODULE = """
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
                %w: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.negate %0 : tensor<8x8xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [1]
     : (tensor<8x8xf32>, tensor<16x8xf32>) -> tensor<8x16xf32>
  %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0]
     : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setenv("SHARDLOG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """A saved run with conflicts."""
    shardlog.run(MODULE).save(tmp_path / "saved.run")
    return str(tmp_path / "saved.run")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What ``shardlog conflicts`` prints."""
    assert main(["conflicts", *arguments]) == 0
    return capsys.readouterr().out


def refuse(_: Session) -> None:
    raise AssertionError("the run is made again")


@pytest.mark.parametrize(
    "arguments",
    [(), ("--keep-shardings",), ("--keep-shardings", "--full"), ("--keep-shardings", "--json")],
    ids=" ".join,
)
def test_what_is_kept_is_what_was_found(
    saved: str, arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = printed(capsys, saved, *arguments)
    assert "all-" in first
    monkeypatch.setattr(Session, "programs", property(refuse))
    assert printed(capsys, saved, *arguments) == first
    assert list(shardlog.open(saved).conflicts(keep_shardings="--keep-shardings" in arguments))


def test_annotations_that_were_not_read_are_found_later(
    saved: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shardlog.open(saved).conflicts(keep_shardings=True)
    assert len(found) > 1
    printed(capsys, saved, "--keep-shardings", "--full", "--limit", "1")
    (file,) = folder.glob("*.conflicts")
    first = file.read_bytes()
    session = shardlog.open(saved)
    again = session.conflicts(keep_shardings=True)
    assert "programs" not in vars(session)
    assert [(each, each.given) for each in again] == [(each, each.given) for each in found]
    session.keep(again)
    assert file.read_bytes() != first


def test_each_choice_and_each_run_has_its_own(saved: str, tmp_path: Path, folder: Path) -> None:
    other = str(tmp_path / "other.run")
    shardlog.run(MODULE.replace('"b"=4', '"b"=2')).save(other)
    for path in (saved, other):
        for keep_shardings in (False, True):
            session = shardlog.open(path)
            session.keep(session.conflicts(keep_shardings=keep_shardings))
    assert len(list(folder.glob("*.conflicts"))) == 4


@pytest.mark.parametrize("shape", ["", ":2x4"])
def test_other_numbers_of_a_machine_find_anew(saved: str, tmp_path: Path, folder: Path, shape: str) -> None:
    machine = tmp_path / "machine.toml"
    text = (MACHINES / "v5e.toml").read_text(encoding="utf-8")
    for number in range(2):
        machine.write_text(f"{text}\n# {number}\n", encoding="utf-8")
        session = shardlog.open(saved)
        session.keep(session.conflicts(topology=f"{machine}{shape}"))
        assert "programs" in vars(session)
    assert len(list(folder.glob("*.conflicts"))) == 2


def test_other_code_finds_anew(saved: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = shardlog.open(saved)
    session.keep(session.conflicts())
    monkeypatch.setattr(kept, "_code", lambda: ["another"])
    again = shardlog.open(saved)
    again.keep(again.conflicts())
    assert "programs" in vars(again)
    assert len(list(folder.glob("*.conflicts"))) == 2


@pytest.mark.parametrize("data", [b"", b"x\x9c", b"[]", b"x\x9c\x8b\xae\x05\x00\x01\x15\x00\xb9"])
def test_a_damaged_file_is_found_anew(saved: str, folder: Path, data: bytes) -> None:
    found = shardlog.open(saved).conflicts()
    session = shardlog.open(saved)
    session.keep(session.conflicts())
    (file,) = folder.glob("*.conflicts")
    file.write_bytes(data[:1] + file.read_bytes()[1:] if len(data) < 3 else data)
    again = shardlog.open(saved)
    assert list(again.conflicts()) == list(found)


def test_without_a_cache_nothing_is_kept(
    saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDLOG_CACHE", "")
    before = set(tmp_path.rglob("*"))
    assert printed(capsys, saved) == printed(capsys, saved)
    assert set(tmp_path.rglob("*")) == before


def test_what_a_clock_or_a_file_decides_is_not_kept(saved: str, folder: Path) -> None:
    session = shardlog.open(saved)
    session.keep(session.conflicts(seconds=60))
    assert not list(folder.glob("*.conflicts"))
