"""``shardlog fmt``: files of rules in one layout.

In: the text of a file. Out: the text with the same tokens and comments in the same order. ``pieces.py``
cuts the text into statements, ``spacing.py`` says what stands apart, ``statements.py`` lays out one
statement, ``layout.py`` puts them together; ``einsum.py`` does all of it for einsum notation, ``files.py``
for files.
"""
