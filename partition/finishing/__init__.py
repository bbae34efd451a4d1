"""Passes over a device program after it is written, for the compilers that run it.

In comes a module with collectives. Out comes one that computes the same. ``passes.py`` lists all passes in
order, each with a sentence. ``rewrites.py`` moves ops past collectives, so that compilers can fuse them.
``combining/`` merges collectives, and ``loops.py`` moves some before loops. ``collective_matmul.py`` writes
some part by part, to overlap with products. ``cpus.py`` and ``tpus.py`` have changes for one platform.
``collectives.py`` and ``products.py`` read and write the ops involved.
"""
