"""A run's programs on devices: made for a choice, compiled, run, and compared with one device.

Comes in: a ``Result``, and a ``ProgramChoice``. Goes out: the program that each device runs
(``partitioning.py``); functions from global arrays to global arrays, compiled by XLA with the shardings that
bind, or as shardlog partitioned it; and how far results may be from those of one device.
"""
