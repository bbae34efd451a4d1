"""From a module to the graph that propagation works on.

Comes in: MLIR text or bytecode, or what JAX lowered. Goes out: ``Program``: the graph, and the initial
contents of its cells. An importer never decides a sharding.
"""
