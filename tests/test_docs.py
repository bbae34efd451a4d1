"""The documentation is run: its files are written, its commands run, the output compared.

A block that starts with "```language file" is a file. In a "```console" block a line after "$ " is a command,
lines after "> " go on with it, and all others are its output, in which "..." stands for anything.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest
from shardlog.cli import main
from shardlog.program.shardy import LINES, installed

from .support.drawing import by_day

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
COUNTED = {
    "tactics.md",
    "tutorial.md",
}  # with numbers of what JAX 0.10 lowers; newer ones have a few ops more
PAGES = [page for page in (README, *sorted((ROOT / "docs").rglob("*.md"))) if "$ " in page.read_text()]
GALLERY = [page for page in PAGES if page.parent.name == "gallery"]
# By day two pages of the gallery, and not the one whose commands search the longest: see tests/autosharding.
CASES = by_day(
    [p for p in PAGES if (p.stem in ("heads", "scan") if p in GALLERY else p.stem != "auto")], PAGES
)
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)\n?((?:(?!\$ ).*\n?)*)", re.MULTILINE)
# Without signs of the shell, but for quotes, lines that go on, and a pipe to other tools.
PLAIN = re.compile(
    r"(shardlog (?:'[^']*'|\\\n> |(?<! )#|[^'|<>&;$()*?#\\\n])*)(?:\| ((?:(?!shardlog|python).)*))?"
)
TOOLS = 'shardlog() {{ "{0}" -m shardlog "$@"; }}\npython() {{ "{0}" "$@"; }}\n'


def printed_by(command: str, folder: Path, python: str | Path) -> str:
    """What a shell prints for a command, in which `shardlog` and `python` are of this Python."""
    script = TOOLS.format(python) + command.replace("\n> ", "\n")
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def printed_here(command: str, rest: str | None, folder: Path) -> str:
    """What a plain command of shardlog prints, run in this process: most of a process is spent on imports.
    A shell runs the rest, behind a pipe."""
    said = TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True)
    errors = StringIO()
    words = shlex.split(command.replace("\\\n> ", " ").replace("\n> ", "\n"))
    with (
        chdir(folder),
        redirect_stdout(said),
        redirect_stderr(said if rest is None else errors),
        suppress(SystemExit),
    ):
        main(words[1:])
    said.seek(0)
    if rest is None:
        return said.read()
    shell = ["bash", "-c", rest]
    done = subprocess.run(shell, input=said.read(), cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return errors.getvalue() + done.stdout


def run_page(page: Path, folder: Path, python: str | Path | None = None) -> int:
    """Writes the files of a page, and runs its commands and asserts what they print; returns their number.

    All run in processes of the given Python; without one, plain commands of shardlog run in this process.
    """
    ran = 0
    for language, file, content in BLOCK.findall(page.read_text()):
        if file:
            (folder / file).write_text(content)
        for command, expected in COMMAND.findall(content) if language == "console" else ():
            if python is None and (plain := PLAIN.fullmatch(command)):
                said = printed_here(plain[1], plain[2], folder)
            else:
                said = printed_by(command, folder, python or sys.executable)
            printed = expected.strip(), said.strip()
            alike = printed_alike(*printed)
            if (page.name in COUNTED or page.parent.name == "gallery") and installed() != LINES[0]:
                alike = alike or printed_alike(*map(numberless, printed))
            assert alike, f"$ {command}\n{said}"
            ran += 1
    return ran


def printed_alike(expected: str, printed: str) -> bool:
    """Whether an output is as a page has it, where "..." stands for anything."""
    return bool(re.fullmatch(re.escape(expected).replace(r"\.\.\.", "(?:.|\n)*"), printed))


def numberless(text: str) -> str:
    """A text without its numbers and the widths of its columns."""
    return re.sub(r"[ -]+", " ", re.sub(r"\d+", "0", text)).replace("\n ", "\n")


@pytest.mark.parametrize("page", CASES, ids=lambda page: page.name)
def test_page(page: Path, tmp_path: Path) -> None:
    assert run_page(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
    assert not [link for link in links if not (page.parent / link).exists()]


def test_the_table_of_the_gallery_has_the_figures_of_its_pages() -> None:
    index = ROOT / "docs" / "gallery" / "index.md"
    rows = re.findall(r"\]\((\w+\.md)\) \| ([\d,]+) \| ([\d,]+) \|", index.read_text())
    assert {page for page, *_ in rows} == {page.name for page in GALLERY}
    for page, before, after in rows:
        text = (index.parent / page).read_text()
        assert f", {before} bytes sent by each device" in text
        assert f": {before} -> {after}\n" in text or f", {after} bytes sent by each device" in text
