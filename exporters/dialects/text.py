"""A module as text of MLIR's own sharding dialects."""

from __future__ import annotations

from io import BytesIO

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext

from ...errors import ShardlogError, closest
from ...partition.layouts import Axes
from ...program.carried import SPELLING, note_device
from ...program.function import location
from ...program.meshes import SubAxis, symbol
from ...program.mlir.modules import operations_in, symbols
from ...program.signature import text_of
from .annotations import to_dialect
from .grids import MeshGrid
from .linalg import as_linalg
from .local import localized
from .mpi import with_messages
from .printing import pretty
from .spelling import SPELLINGS, Spelling

VERSIONS = (*SPELLINGS,)
# The version that writes what a module came in.
_CAME = {"rfc": "19", "mesh19": "19", "shard22": "22", "shard": "main"}
# The version that is meant by the name of a dialect alone.
LATEST = {"mesh": "19", "shard": "main"}


def spelled(module: ir.Module, dialect: str, version: str | None) -> str:
    """The text of an annotated module in "shard" or "mesh", as a version of LLVM reads it (``VERSIONS``).

    Ops that LLVM lacks are in generic form, which it reads with ``-allow-unregistered-dialect``. Raises
    ShardlogError for a version without the dialect, and for a program that the dialect cannot express.
    """
    spelling = _spelling(dialect, version)
    return pretty(_as_llvm_reads_it(to_dialect(module, spelling)))


def respelled(module: ir.Module, version: str | None) -> str:
    """The text of a module in the normal form: in its original dialect, or in the dialect of a version of
    LLVM. Raises ShardlogError as ``spelled`` does."""
    if version is None:
        held = module.operation.attributes
        came = text_of(held[SPELLING]) if SPELLING in held else "shard"
        version = _CAME[came]
    return spelled(module, _version(version).dialect, version)


def local_text(
    module: ir.Module, axes: Axes, dialect: str, version: str | None, *, whole_arguments: bool = False
) -> str:
    """The text of a partitioned program in "shard" or "mpi", as a version of LLVM reads it.

    ``axes`` are the axes of the program. Raises ShardlogError for a version without the dialect, and for a
    collective that the dialect does not have.
    """
    if dialect == "mpi" and version not in (None, "main"):
        hint = "it has its collectives in main alone"
        raise ShardlogError(f"LLVM {version} lacks ops of the dialect mpi", where="partition", hint=hint)
    spelling = _version(version or LATEST["shard"])
    mesh = axes.mesh
    if mesh is None:
        raise ShardlogError("the program has no mesh", hint="annotate it: shard.grid @g(shape = 2x2)")
    if mesh.device_ids:
        hint = "a grid lists its devices row by row; give the mesh no device_ids"
        declared = symbols(module, "sdy.mesh").get(mesh.name)
        where = "" if declared is None else location(declared)
        raise ShardlogError(f"mesh {symbol(mesh.name)} has device_ids", where=where, hint=hint)
    pieces = [SubAxis(p.axis, p.pre, p.size) for p in axes.pieces if p.mesh == axes.main]
    parts = [  # an axis of size 1 has no pieces
        part
        for name, size in mesh.axes
        for part in ([SubAxis(name, 1, 1)] if size == 1 else [p for p in pieces if p.name == name])
    ]
    grid = MeshGrid(mesh.name, mesh, tuple(parts))
    local = localized(module, grid, spelling.scatter, whole_arguments=whole_arguments)
    if dialect == "mpi":
        with_messages(local, grid)
        return pretty(_as_llvm_reads_it(local))
    note_device(local, {grid.name})
    if spelling.dialect != "shard":
        with local.context, ir.Location.unknown():
            for op in operations_in(local):
                if op.name.startswith("shard."):
                    spelling.respell(op)
    return pretty(_as_llvm_reads_it(local))


def _spelling(dialect: str, version: str | None) -> Spelling:
    version = version or LATEST[dialect]
    spelling = _version(version)
    if spelling.dialect != dialect:
        hint = f"that dialect is called {spelling.dialect} there"
        raise ShardlogError(f"LLVM {version} has no dialect {dialect}", hint=hint)
    return spelling


def _version(version: str) -> Spelling:
    if version not in SPELLINGS:
        raise ShardlogError(f"no version {version!r} of the dialects", hint=closest(version, VERSIONS))
    return SPELLINGS[version]


def _as_llvm_reads_it(module: ir.Module) -> str:
    """The text of a module, with ops that LLVM lacks in generic form."""
    context, registry = ir.Context(), ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)  # those of LLVM, but for a few
    context.append_dialect_registry(registry)
    context.allow_unregistered_dialects = True
    names, is_registered = {op.name for op in operations_in(module)}, module.context.is_registered_operation
    context.load_all_available_dialects()
    of_linalg = any(name.startswith("linalg.") for name in names)
    if not of_linalg and all(is_registered(name) == context.is_registered_operation(name) for name in names):
        written = BytesIO()
        module.operation.print(file=written, binary=True, assume_verified=True)
        return written.getvalue().decode()
    generic = str(module.operation.get_asm(print_generic_op_form=True))
    return str(ir.Module.parse(as_linalg(generic) if of_linalg else generic, context))
