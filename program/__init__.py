"""The vocabulary of all stages: meshes, shardings, functions, and the answers of the op rules about
signatures.

Comes in: one op, attribute or function of a module. Goes out: data that importers fill, propagation reads and
exporters write. Nothing here decides a sharding.
"""
