"""Shardings in JAX's notation, ``P(None, ('data', 'model'))``: read as text, never carried out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from ..errors import ShardlogError
from ..program.meshes import quoted
from .sources.vetting import risk

NOTATION = r"(?:\w+\.)*P(?:artitionSpec)?\s*\("  # how such a text begins
_BEGIN = re.compile(NOTATION)
_HINT = """expected an entry for each dimension, as in P(None, 'data', ('x', 'y'))"""


def is_spec(text: str) -> bool:
    """Whether a text is to be a ``PartitionSpec``."""
    return _BEGIN.match(text) is not None


def dimensions(text: str, where: str, rank: int | None) -> str:
    """The text of a ``PartitionSpec`` in Shardy's notation, ``[{}, {"data"}]``, with ``rank`` entries. Raises
    ShardlogError for other objects, and for more entries than dimensions."""
    try:
        if fault := risk(text.encode()):
            raise ShardlogError("not a PartitionSpec", where=where, hint=fault[1])
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call):
            raise ValueError
        entries = [_entry(argument) for argument in call.args]
        unreduced = _unreduced({str(keyword.arg): keyword.value for keyword in call.keywords})
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ShardlogError("not a PartitionSpec", where=where, hint=_HINT) from None
    if rank is not None and len(entries) > rank:
        message = f"{len(entries)} entries for {rank} dimension{'' if rank == 1 else 's'}"
        raise ShardlogError(message, where=where, hint=_HINT)
    entries += ["{}"] * ((rank or 0) - len(entries))
    return f"[{', '.join(entries)}]{unreduced}"


def _entry(node: ast.expr) -> str:
    """An entry as Shardy has it; as with JAX, other axes are added to none but ``P.UNCONSTRAINED``."""
    if isinstance(node, ast.Attribute) and node.attr == "UNCONSTRAINED":
        return "{?}"
    if isinstance(node, ast.Constant) and node.value is None:
        return "{}"
    return "{" + ", ".join(map(quoted, _names(node))) + "}"


def _names(node: ast.expr) -> list[str]:
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    values = [part.value for part in parts if isinstance(part, ast.Constant)]
    names = [value for value in values if isinstance(value, str)]
    if len(names) != len(parts):
        raise ValueError
    return names


def _unreduced(keywords: dict[str, ast.expr]) -> str:
    """Shardy's unreduced axes. ``reduced`` axes matter only for derivatives."""
    sets = {label: _names(keywords.pop(label)) for label in ("unreduced", "reduced") if label in keywords}
    kind = keywords.pop("unreduced_kind", None)  # UnreducedKind.max, or max, as JAX prints it
    if keywords or not isinstance(kind, ast.Attribute | ast.Name | None):
        raise ValueError
    reduction = kind.attr if isinstance(kind, ast.Attribute) else kind.id if kind else "sum"
    return said_unreduced(sets.get("unreduced", ()), reduction)


def said_unreduced(names: Iterable[str], kind: str) -> str:
    """The end of a sharding: the unreduced axes, and how values along them are combined."""
    axes = ", ".join(map(quoted, sorted(names)))
    return f", unreduced={'' if kind == 'sum' else kind}{{{axes}}}" if axes else ""
