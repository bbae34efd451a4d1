"""A run's programs on devices: made for a choice, compiled, run, and compared with one device.

Comes in: a ``Result``, and a ``ProgramChoice``. Goes out: the program that each device runs
(``partitioning.py``), and functions from global arrays to global arrays. XLA compiles these, with binding
shardings or as shardlog partitioned the program. Also how far results may be from those of one device.
"""
