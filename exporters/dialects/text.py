"""A module as text of MLIR's own sharding dialects."""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext

from ...errors import ShardlogError, closest
from .annotations import to_dialect
from .printing import pretty
from .spelling import SPELLINGS

VERSIONS = (*SPELLINGS,)
# The version that is meant by the name of a dialect alone.
LATEST = {"mesh": "19", "shard": "main"}


def spelled(module: ir.Module, dialect: str, version: str | None, where: str) -> str:
    """The text of an annotated module in "shard" or "mesh", as a version of LLVM reads it (``VERSIONS``).

    Ops that LLVM lacks are in generic form, which it reads with ``-allow-unregistered-dialect``. Raises
    ShardlogError for a version without the dialect, and for what the dialect cannot say.
    """
    version = version or LATEST[dialect]
    if version not in SPELLINGS:
        raise ShardlogError(f"no version {version!r} of the dialects", hint=closest(version, VERSIONS))
    spelling = SPELLINGS[version]
    if spelling.dialect != dialect:
        hint = f"that dialect is called {spelling.dialect} there"
        raise ShardlogError(f"LLVM {version} has no dialect {dialect}", hint=hint)
    return pretty(_as_llvm_reads_it(to_dialect(module, spelling, where)))


def _as_llvm_reads_it(module: ir.Module) -> str:
    """The text of a module, of which ops that LLVM lacks are in generic form."""
    context, registry = ir.Context(), ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)  # those of LLVM, but for a few
    context.append_dialect_registry(registry)
    context.allow_unregistered_dialects = True
    generic = str(module.operation.get_asm(print_generic_op_form=True))
    return str(ir.Module.parse(generic, context))
