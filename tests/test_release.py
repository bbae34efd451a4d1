"""What a release says of itself: one version, and the extras and file formats that there are; and runs of
older releases are refused by name."""

from __future__ import annotations

import gzip
import re
import tomllib
from pathlib import Path

import pytest
import shardlog
from shardlog.autosharding.plan import VERSION as AUTO_PLAN
from shardlog.cli import main
from shardlog.partition.forms import VERSION as PLAN
from shardlog.runs.records.saved_file import FORMAT

ROOT = Path(__file__).parents[1]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_one_version() -> None:
    version = shardlog.__version__
    assert re.search(r"(?m)^## (?!Unreleased)(\S+)", read("CHANGELOG.md"))[1] == version  # type: ignore[index]
    assert re.search(r"(?m)^version: (.*)$", read("CITATION.cff"))[1] == version  # type: ignore[index]
    assert f'version: "{version}"' in read("conda/recipe.yaml")


def test_the_table_of_extras_is_whole() -> None:
    extras = tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]
    table = read("README.md").partition("| extra | adds |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([\w]+)`", "".join(row.split("|")[1] for row in table.splitlines()[2:])))
    assert named == set(extras) - {"test", "fuzz", "dev", "docs", "release"}
    every = re.findall(r"\[(.*)\]", extras["all"][0])[0].split(",")
    assert set(every) == named - {"all", "ray", "dask", "cuda", "cuda13", "tpu"}


def test_the_table_of_formats_is_true() -> None:
    rows = re.findall(r"(?m)^\| ([^|]+) \| [^|]+ \| (\d+) \|", read("docs/formats.md"))
    assert dict(rows) == {
        "saved run": str(FORMAT),
        "plan of a program": str(PLAN),
        "plan of automatic sharding": str(AUTO_PLAN),
    }


def test_a_run_of_another_release_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.shardlog"
    path.write_bytes(gzip.decompress((ROOT / "tests/data/saved_run_0_1.shardlog.gz").read_bytes()))
    for command in (["why", str(path), "%0"], ["check", str(path), "--fail-on", "unknown-op"]):
        assert main(command) == 2
        message = f"saved in format 1 of shardlog 0.1, this version of shardlog reads format {FORMAT}"
        assert message in capsys.readouterr().err
    with pytest.raises(shardlog.ShardlogError, match="run it again"):
        shardlog.open(path)
