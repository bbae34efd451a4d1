"""MLIR's sharding dialects, mesh and shard in all their spellings, and the dialects around them that jaxlib
reads in generic form only.

Comes in: text of a module. Goes out: the same text in generic form, line by line, and of the module that MLIR
reads from that the normal form: all that says how values are sharded is said in sdy.
"""
