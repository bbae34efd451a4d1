"""XLA's dumps: what a compile handed to Shardy, and what Shardy made of it.

With ``xla_dump_to=DIR`` and ``xla_dump_hlo_pass_re=.*shard.*`` a compile leaves, for every module:

    DIR/shardy/module_0000.jit_step/00.input_module.mlir          as it comes out of HLO
    DIR/shardy/module_0000.jit_step/01.before_propagation.mlir    as it is given to propagation
    DIR/shardy/module_0000.jit_step/02.after_propagation.mlir     with the shardings that XLA goes on with
    DIR/module_0000.jit_step.*.before_shardy-xla.txt              the HLO, which alone has source lines
"""

from __future__ import annotations

import glob
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

from ..errors import ShardlogError, closest
from ..notations.frontend_attributes import read_frontend_attributes
from ..notations.xla_loops import simplify_loops
from ..program.modules import bytecode_of, side_by_side, symbols
from .source import Text, parse_module, read_file

FLAGS = {"xla_dump_to": "DIR", "xla_dump_hlo_pass_re": ".*shard.*"}
_BEFORE, _AFTER, _INPUT = "before_propagation", "after_propagation", "input_module"
_HOW = "compile with XLA_FLAGS='" + " ".join(f"--{name}={value}" for name, value in FLAGS.items()) + "'"


def read_dump(folder: Path, module: str = "") -> Text:
    """The program of a dump that was given to propagation.

    ``module`` is the name of one where the dump has several: ``jit_step``, or that of its folder. Raises
    ShardlogError where the dump has none or several.
    """
    found = _modules(folder)
    if not found:
        raise ShardlogError("no dump of Shardy's modules", where=str(folder), hint=_HOW)
    names = [path.name for path in found]
    chosen = (
        [path for path in found if module in (path.name, path.name.partition(".")[2])] if module else found
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
    return beside(read_file(before), before)


def beside(text: Text, path: Path) -> Text:
    """A program from a file. If the file belongs to a dump, the program has its source lines and XLA's own
    result, where the files beside it have them."""
    stage = path.name.partition(".")[2].removesuffix(".mlir")
    if stage not in (_BEFORE, _INPUT):
        return text
    folder = path.resolve().parent
    after = _stage(folder, _AFTER)
    if after is not None:
        text = replace(text, after=read_file(after).data)
    sources = sorted(folder.parent.parent.glob(f"{glob.escape(folder.name)}.*before_shardy-xla.txt"))
    return _with_lines(text, sources[0]) if sources else text


def _modules(folder: Path) -> list[Path]:
    """The folders of modules: of a dump, of its folder ``shardy``, or one of a module itself."""
    for candidate in (folder / "shardy", folder):
        found = sorted(p for p in candidate.iterdir() if p.is_dir()) if candidate.is_dir() else []
        found = [path for path in found if _stage(path, _BEFORE) or _stage(path, _INPUT)]
        if found:
            return found
    return [folder] if _stage(folder, _BEFORE) or _stage(folder, _INPUT) else []


def _stage(folder: Path, stage: str) -> Path | None:
    """The file of a stage; its number differs between versions."""
    found = sorted(folder.glob(f"[0-9]*.{stage}.mlir"))
    return found[0] if found else None


def _with_lines(text: Text, hlo: Path) -> Text:
    """A program with the locations of the same program as HLO; as it is where the two are not alike."""
    module = parse_module(text)
    try:
        from jaxlib import _hlo, _jax  # type: ignore[attr-defined] # without stubs

        proto = _hlo.hlo_module_from_text(hlo.read_text()).as_serialized_hlo_module_proto()
        with module.context, ir.Location.unknown():
            named = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(proto))
            read_frontend_attributes(named)
            simplify_loops(named)
    except (ImportError, AttributeError, OSError, RuntimeError, ValueError, ShardlogError):
        return text  # of another version: what it says would be no more than lines
    ours, theirs = symbols(module, "func.func"), symbols(named, "func.func")
    for name in ours.keys() & theirs.keys():
        pairs = list(side_by_side(ours[name], theirs[name]))
        if all(a is not None and b is not None and _alike(a, b) for a, b in pairs):
            for a, b in pairs:
                if isinstance(a, ir.Value):
                    ir.BlockArgument(a).set_location(b.location)
                else:
                    a.operation.location = b.location
    return replace(text, data=bytecode_of(module))


def _alike(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, ir.Value):
        return bool(ours.type == theirs.type)
    names = [op.operation.name.replace("sdy.constant", "stablehlo.constant") for op in (ours, theirs)]
    return bool(names[0] == names[1])
