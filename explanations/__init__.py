"""Explanations: why a tensor has its sharding, why not another, which tensors must move, and how two runs
differ.

Comes in: a ``RunRecord``, and ``Programs`` (``partitioned.py``), the partitioned programs of a run. Goes out:
answers as data, as text, as HTML and as graphs. ``questions/`` finds answers, and ``answers/`` prints them.
"""
