"""``shardlog lsp``: answers for editors in which files of rules are written.

In: texts, as they stand in the editor. Out: their errors, and answers about names and places. ``names.py``
and ``factors.py`` find the names of Datalog and of einsum notation. ``programs.py`` finds the files of a
program and its errors. ``answers.py`` answers questions about a place. ``modules.py`` explains the shardings
of values in MLIR modules. ``server.py`` speaks the protocol.
"""
