"""Arguments from a checkpoint of orbax: its leaves, by their paths."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ShardlogError, closest, from_extra
from ..program.mlir.places import components
from .values import BoundaryValue

_METADATA = "_METADATA"  # which a directory of orbax has
_Path = tuple[str, ...]


def read_checkpoint(directory: Path, values: Sequence[BoundaryValue]) -> dict[str, Any]:
    """The arrays of a checkpoint for those arguments that it has, by the names of these.

    The leaf at ``params/w`` is the argument ``params['w']``, or, in a checkpoint of one argument alone,
    ``state.params['w']``. Leaves that no argument takes are left out. Raises ShardlogError if orbax is not
    installed, if the folder is no checkpoint of orbax, and if it has no argument.
    """
    with from_extra("orbax", "orbax"):
        import orbax.checkpoint as ocp
    if not (directory / _METADATA).exists():
        inside = sorted(path.parent for path in directory.glob(f"**/{_METADATA}"))
        hint = f"there is one in {inside[-1]}" if inside else "orbax.checkpoint writes them"
        raise ShardlogError("not an Orbax checkpoint", where=str(directory), hint=hint)
    logging.getLogger("absl").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            leaves = _leaves(ocp, directory.absolute())  # orbax takes no others
    except Exception as error:  # of orbax and tensorstore, of many classes
        first = str(error).partition("\n")[0] or type(error).__name__
        raise ShardlogError(f"orbax cannot read it: {first}", where=str(directory)) from None
    arrays = dict[str, Any]()
    paths = {value.name: components(value.name) for value in values}
    named = closest(values[0].name, map("/".join, leaves)) if values else "the program takes nothing"
    for outer in (0, 1):  # each leaf is one argument, the first that may be it
        for name, path in paths.items():
            if name not in arrays and path[outer:] in leaves:
                arrays[name] = leaves.pop(path[outer:])
    if not arrays:
        raise ShardlogError("it has none of the program's arguments", where=str(directory), hint=named)
    return arrays


def _leaves(ocp: Any, directory: Path) -> dict[_Path, Any]:
    """The arrays of a checkpoint by their paths, on the host: its devices need not be there."""
    import jax

    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as reader:
        tree = reader.metadata(directory).item_metadata.tree
        kinds = jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=np.ndarray), tree)
        read = reader.restore(directory, ocp.args.PyTreeRestore(restore_args=kinds))
    flat, _ = jax.tree_util.tree_flatten_with_path(read)
    return {tuple(_name(key) for key in path): np.asarray(leaf) for path, leaf in flat}


def _name(key: object) -> str:
    for label in ("key", "idx", "name"):
        if hasattr(key, label):
            return str(getattr(key, label))
    return str(key)
