"""Where programs come from: files, standard input, JAX, dumps of XLA, and views of what XLA makes of them.

Comes in: a path, text, bytes or a lowered function. Goes out: the module as MLIR has read it, its text, and
the lines and names that the user knows it by.
"""
