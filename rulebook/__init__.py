"""The op rules of a run: the shipped ones, those of installed packages, and the user's.

Comes in: rule files, lines in einsum notation, lists of op priorities. Goes out: ``RuleBook``, which answers
for the signature of an op.
"""
