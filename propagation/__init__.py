"""The fixpoint: turns over the graph of a module, stage by stage.

Comes in: a ``Program`` and the rules of a run. Goes out: ``Fixpoint``: what every cell holds at the end, and
the log of all changes.
"""
