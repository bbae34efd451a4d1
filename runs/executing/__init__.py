"""A run's program on devices: compiled by XLA with the shardings that bind, or as shardlog partitioned it.

Comes in: a ``Result``. Goes out: functions from global arrays to global arrays, the collectives of the
partitioned program with what each is for, and how far its results may be from those of one device.
"""
