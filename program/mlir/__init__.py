"""MLIR for all stages: the ops of a module, the origins of values, and messages about errors.

Comes in: modules, locations and diagnostics of MLIR. Goes out: ops by symbol and in their order, lines and
paths of the user's program, errors for users.
"""
