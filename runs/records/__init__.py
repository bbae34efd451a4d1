"""A run that answers questions, in memory and in a file.

Comes in: a run, or the file of one. Goes out: ``RunRecord``, the only interface for explanations: values,
ops, the contents of cells over time, the log of changes, and turns solved again with reasons.
"""
