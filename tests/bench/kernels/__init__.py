"""Kernels of GPUs: programs that measure them (``programs``, ``measure``), and what is said of them beside
that (``python -m shardlog.tests.bench.kernels DATA...``)."""
