"""From the final contents back to what people and compilers read.

Comes in: the graph with its final shardings. Goes out: the annotated module, relations, facts for Soufflé,
JAX's shardings. An exporter never decides a sharding.
"""
