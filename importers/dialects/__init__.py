"""MLIR's sharding dialects, mesh and shard in all their spellings, and the dialects around them that jaxlib
reads in generic form only.

Comes in: the text of a module. Goes out: the same text in generic form, line by line; and, once MLIR has read
that, the module in normal form, in which all shardings are sdy's.
"""
