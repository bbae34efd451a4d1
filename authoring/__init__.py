"""Tools for authors of rules: a formatter, the service of editors, profiles of programs.

In: files of rules. Out: the same files laid out; what editors ask about names and places; times and tuples.
"""
