"""Programs of one op or a few: measured, and a machine's numbers fitted to these times.

In: a GPU, a CPU, or XLA's compiler for TPUs. Out: a file of measured programs, the table ``[kernels]`` or
``[ops]`` of a machine's file, and predicted beside measured times (``python -m shardlog.measuring --help``).
"""
