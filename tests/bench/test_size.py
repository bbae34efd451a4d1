"""The program that commands are measured on: as many ops as are asked for, and an axis goes through all
layers."""

from __future__ import annotations

import shardlog

from .bench import ops
from .size import program


def test_the_program_has_so_many_ops() -> None:
    text = program(50)
    assert ops(text) == 50 + 4  # with the module, the mesh, the function and its return
    (why,) = shardlog.run(text).why("result#0", 0)
    assert (why.axis, len(why.steps), why.origin.value) == ("data", 21, "%arg0")
