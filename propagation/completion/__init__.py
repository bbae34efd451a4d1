"""Completion: annotations for every op, from those that a program has; see
``rules/propagation/completion.dl``.

Comes in: a module with a few annotations. Goes out: the same module, in which every op that an annotation
reaches has shardings for its results, and constraints on operands that it needs in another sharding.
"""
