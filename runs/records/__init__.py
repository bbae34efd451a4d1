"""A run that answers questions, in memory and in a file.

Comes in: a run, or the file of one. Goes out: ``Record``, the one interface that explanations read: values,
ops, what cells held when, the log of changes, and turns solved again with reasons.
"""
