"""Explanations: why a tensor is sharded so, why not, what must move, and what differs between two runs.

Comes in: a ``Record``, and ``Programs`` (``partitioned.py``), the partitioned programs of a run. Goes out:
answers as data, as text, as HTML and as graphs. ``questions/`` finds what ``answers/`` says.
"""
