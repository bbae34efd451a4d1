"""A run: its options, performing it, its result, and what is read off it.

Comes in: a program and options. Goes out: ``Result``: the module, relations, facts, JAX's shardings,
accounts of tactics, an executable; and doors to the questions that explanations answer.
"""
