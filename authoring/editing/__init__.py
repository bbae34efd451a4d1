"""``shardlog lsp``: what editors ask about files of rules while they are written.

In: texts, as they stand in the editor. Out: what is wrong with them, and answers about names and places.
``names.py`` and ``factors.py`` find the names of Datalog and of einsum notation, ``programs.py`` the files
that make up a program and its errors, ``answers.py`` what is asked, ``modules.py`` values of MLIR modules and
why they are sharded as they are; ``server.py`` speaks the protocol.
"""
