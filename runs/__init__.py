"""A run: its options, its execution, its result, and the data that is read off it.

Comes in: a program and options. Goes out: ``Result``, which is data: the module, relations and facts, and
the record of who changed what when; and what is read off it: JAX's shardings, accounts of tactics, agreement
with XLA.
"""
