"""A run: its options, its execution, its result, and data derived from that.

Comes in: a program and options. Goes out: ``Result``, which is data: the module, relations and facts, and the
log of changes; and data derived from it: JAX's shardings, accounts of tactics, agreement with XLA.
"""
