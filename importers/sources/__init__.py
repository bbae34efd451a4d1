"""Sources of programs: files, standard input, JAX, dumps of XLA, and views of XLA's changes to them.

In comes a path, text, bytes or a lowered function. Out come the module as read by MLIR, its text, and the
line numbers and names that the user knows.
"""
