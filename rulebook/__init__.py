"""The op rules of a run: those that ship, those of installed packages, and those that the user adds.

Comes in: rule files, lines in einsum notation, lists of op priorities. Goes out: ``RuleBook``, which answers
for the signature of an op.
"""
