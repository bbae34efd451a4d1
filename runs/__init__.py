"""A run as it is asked about: in memory, saved to a file, and read back.

Comes in: a ``Result``, or a file. Goes out: ``Record``, the one interface that explanations read.
"""
