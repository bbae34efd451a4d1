"""From an annotated module to the program that each device runs.

In comes a module in which every value has its sharding, with the rulebook of the run (``partitioning.py``).
Out comes a module of local tensors, and the collectives that move them (``device_program.py``). The program
is planned first and written then:

``preparing/`` copies the module and inlines small functions. ``facts/`` records what its ops need.
``choice/`` finds a ``Plan`` (``plan.py``): the layouts of values, and the way to compute each op.
``improving.py`` compares plans, and finds one that fits into memory. ``writing/`` writes the program of a
plan, and ``finishing/`` adapts it to the compilers that run it.

The rules in ``rules/partition`` say along which factors an op may be computed in parts, which layouts that
needs, and which way is the cheapest. ``layouts.py`` describes how a tensor lies on the devices, and
``reshards/`` plans how it gets from one layout to another. ``walk.py`` decides which values are resharded for
which ops, and ``executions.py`` counts how often ops run.
"""
