"""XLA's dumps: the input and the output of Shardy in a compilation.

With ``xla_dump_to=DIR`` and ``xla_dump_hlo_pass_re=.*shard.*`` XLA writes for every module:

    DIR/shardy/module_0000.jit_step/00.input_module.mlir          as it comes out of HLO
    DIR/shardy/module_0000.jit_step/01.before_propagation.mlir    as it is given to propagation
    DIR/shardy/module_0000.jit_step/02.after_propagation.mlir     with the shardings that XLA goes on with
    DIR/module_0000.jit_step.*.before_shardy-xla.txt              the HLO, which alone has source lines
"""

from __future__ import annotations

import glob
from dataclasses import replace
from pathlib import Path

from ...errors import ShardlogError, closest
from .files import read_file
from .text import Text
from .vetting import from_hlo

FLAGS = {"xla_dump_to": "DIR", "xla_dump_hlo_pass_re": ".*shard.*"}
_BEFORE, _AFTER, _INPUT = "before_propagation", "after_propagation", "input_module"
_HOW = "compile with XLA_FLAGS='" + " ".join(f"--{name}={value}" for name, value in FLAGS.items()) + "'"


def read_dump(folder: Path, module: str = "", *, own: bool = False) -> Text:
    """The program of a dump, as propagation receives it.

    ``module`` selects one of several modules: ``jit_step``, or the name of its folder. ``own``: the dump is
    from a compilation in this process. Raises ShardlogError if the dump has no such module, or several.
    """
    folders = _modules(folder)
    if not folders:
        raise ShardlogError("no dump of Shardy's modules", where=str(folder), hint=_HOW)
    names = [path.name for path in folders]
    chosen = (
        [path for path in folders if module in (path.name, path.name.partition(".")[2])]
        if module
        else folders
    )
    if not chosen:
        hint = closest(module, names) or f"there are {', '.join(names)}"
        raise ShardlogError(f"there is no module {module}", where=str(folder), hint=hint)
    if len(chosen) > 1:
        listed = ", ".join(path.name for path in chosen[:10])
        more = f" and {len(chosen) - 10} more" if len(chosen) > 10 else ""
        hint = f"take one with --module: {listed}{more}"
        raise ShardlogError(f"the dump has {len(chosen)} modules", where=str(folder), hint=hint)
    before = _stage(chosen[0], _BEFORE) or _stage(chosen[0], _INPUT)
    if before is None:
        message = f"neither {_BEFORE} nor {_INPUT} is there"
        raise ShardlogError(message, where=str(chosen[0]), hint=_HOW)
    return beside(read_file(before), before, own=own)


def beside(text: Text, path: Path, *, own: bool = False) -> Text:
    """A program from a file. If the file belongs to a dump (``own``: of a compile of this process), the
    program has its source lines and XLA's own result, where the files beside it have them."""
    stage = path.name.partition(".")[2].removesuffix(".mlir")
    if stage not in (_BEFORE, _INPUT):
        return text
    folder = path.resolve().parent
    after = _stage(folder, _AFTER)
    if after is not None:
        text = replace(text, after=read_file(after).data)
    sources = sorted(folder.parent.parent.glob(f"{glob.escape(folder.name)}.*before_shardy-xla.txt"))
    hlo = from_hlo(sources[0].read_bytes(), own=own) if sources else b""
    if not hlo:
        return text
    from .lines import with_lines

    return with_lines(text, hlo)


def _modules(folder: Path) -> list[Path]:
    """The folders of modules: of a dump, of its folder ``shardy``, or one of a module itself."""
    for candidate in (folder / "shardy", folder):
        folders = sorted(p for p in candidate.iterdir() if p.is_dir()) if candidate.is_dir() else []
        folders = [path for path in folders if _stage(path, _BEFORE) or _stage(path, _INPUT)]
        if folders:
            return folders
    return [folder] if _stage(folder, _BEFORE) or _stage(folder, _INPUT) else []


def _stage(folder: Path, stage: str) -> Path | None:
    """The file of a stage; its number differs between versions."""
    files = sorted(folder.glob(f"[0-9]*.{stage}.mlir"))
    return files[0] if files else None
