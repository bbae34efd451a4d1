"""The fixpoint: turns over the graph of a module, stage by stage.

Comes in: a ``Program`` and the rules of a run. Goes out: ``Fixpoint``: the final content of every cell, and
the log of all changes.
"""
