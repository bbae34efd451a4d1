"""The page of the command line is that of the parser."""

from __future__ import annotations

from pathlib import Path

from shardlog.cli.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_is_that_of_the_parser() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "python -m shardlog.cli.reference > docs/cli.md"


def test_commands_and_shared_options() -> None:
    text = reference()
    assert "| [`shardlog rules check`](#shardlog-rules-check) | check op rules" in text
    assert text.count("| `--keep-shardings`, `--no-keep-shardings` |") == 1
    part = text.partition("## shardlog expect\n")[2].partition("\n## ")[0]
    assert "| `SHARDINGS` |" in part
    assert "SUPPRESS" not in text and "`stablehlo.dot_general`," in text
    assert "And: [options of a run](#options-of-a-run) and [the partitioned program]" in part
