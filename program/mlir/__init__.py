"""What all stages ask of MLIR: the ops of a module, where values come from, and messages about what is wrong.

Comes in: modules, locations and diagnostics of MLIR. Goes out: ops by symbol and in their order, lines and
paths of the user's program, errors for users.
"""
