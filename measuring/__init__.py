"""Kernels of GPUs: programs to measure, their measured times, and a machine's numbers fitted to these.

In: a GPU. Out: a file of measured programs, the table ``[kernels]`` of a machine's file, and predicted beside
measured times (``python -m shardlog.measuring --help``).
"""
