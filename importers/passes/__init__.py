"""What happens to a function on the way in, as Shardy's import passes do it.

Comes in: a ``Function`` as the module has it. Goes out: the same with split constants, applied constraints
and known data-flow edges; the module itself is not changed.
"""
