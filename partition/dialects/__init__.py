"""Programs of each device with the collectives of MLIR's dialect shard.

In comes such a program in normal form (``importers/dialects/normal.py``). Out comes one with fewer
collectives.
"""
