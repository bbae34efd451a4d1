"""Passes over a function before propagation, as Shardy's import passes do them.

Comes in: a ``Function`` as the module has it. Goes out: the same with split constants, applied constraints
and known data-flow edges; the module itself is not changed.
"""
