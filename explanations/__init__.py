"""Explanations: why a tensor is sharded so, why not, what must move, and what differs between two runs.

Comes in: a ``Record``. Goes out: answers as data, as text, as HTML and as graphs.
"""
