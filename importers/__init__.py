"""From a module to the graph that propagation works on.

In comes MLIR text or bytecode, or a function that JAX lowered. Out comes a ``Program``: the graph, and the
initial contents of its cells. An importer never decides a sharding.
"""
