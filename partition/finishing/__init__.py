"""What is done to a device program once it is written, for the compilers that run it.

In comes a module with collectives; out comes one that computes the same. ``passes.py`` lists all that is
done, in its order, each with a sentence. ``rewrites.py`` lets compilers see past collectives,
``combining.py`` makes one of several, ``loops.py`` puts some before loops, ``collective_matmul.py`` writes
some part by part, beside products; ``cpus.py`` and ``tpus.py`` have what only XLA for these wants.
``collectives.py`` and ``products.py`` read and write the ops that all of this is about.
"""
