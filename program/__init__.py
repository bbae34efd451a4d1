"""What all stages share: meshes, shardings, functions, and what the op rules say of signatures.

Comes in: one op, attribute or function of a module. Goes out: data that importers fill, propagation reads and
exporters write. Nothing here decides a sharding.
"""
