"""Programs of each device whose collectives are those of MLIR's dialect shard.

Comes in: such a program in the normal form (``importers/dialects/normal.py``). Goes out: one with fewer
collectives.
"""
