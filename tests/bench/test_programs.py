"""The table of programs that people have."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

from .programs import roots, row


def test_each_program_of_a_checkout_is_a_row(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "lib").mkdir(parents=True)
    (checkout / "lib" / "types.dl").write_text(".type Node <: number\n")
    (checkout / "run.dl").write_text(
        '#include "lib/types.dl"\n.decl e(x: Node, y: Node)\n.input e(filename="edges.txt", delimiter=" ")\n'
        ".decl path(x: Node, y: Node)\npath(x, y) :- e(x, y).\npath(x, z) :- path(x, y), e(y, z).\n"
        ".decl start(x: Node)\nstart(x) :- path(x, _).\n"
        ".decl last(x: Node)\nlast(x) :- path(_, x), !e(x, _).\n"
    )
    with ZipFile(checkout / "input.zip", "w") as packed:
        packed.writestr("input/edges.txt", "1 2\n2 3\n")
    (checkout / "wrong.dl").write_text(".decl p(x: number)\np(x) :- q(x).\n")
    (checkout / "functors.dl").write_text(
        ".functor f(x: number): number\n.decl p(x: number)\n.input p\n.decl q(x: number)\nq(@f(x)) :- p(x).\n"
    )
    files = roots(checkout)
    assert [file.name for file in files] == ["functors.dl", "run.dl", "wrong.dl"]
    functors, run, wrong = (row(file, checkout, {}, {}, "") for file in files)
    assert functors[1] == "yes, with 1 functors" and functors[3] == "no functions"
    assert run[0] == "checkout/run.dl" and run[1] == "yes" and run[3] == "3"  # two starts, one last
    assert float(run[4]) > 0 and float(run[5]) > 0
    assert wrong[1].startswith("no: wrong.dl:2: unknown relation `q`") and wrong[2:] == [""] * 6
