"""Annotated modules in MLIR's own sharding dialects: shard, of LLVM 22 and later, and mesh, of LLVM 19.

Comes in: a module in the normal form (``importers/dialects/normal.py``), with the shardings that a run
decided. Goes out: the text of the same program, with the grids, annotations and collectives of a dialect.
"""
