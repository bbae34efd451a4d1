"""From the final contents back to formats for people and compilers.

In comes the graph with its final shardings. Out come the annotated module, relations, facts for Soufflé, and
JAX's shardings. An exporter never decides a sharding.
"""
