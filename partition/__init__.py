"""From an annotated module to the program that each device runs.

In come a module in which every value has its sharding, and the rulebook of the run (``partitioning.py``);
out comes a module whose tensors are the parts that one device holds, with the collectives that move them
(``device_program.py``). It is planned first, and written then:

``preparing/`` makes a copy of the module in which calls have ops of their own. ``facts/`` takes down what its
ops need. ``choice/`` finds a ``Plan`` (``plan.py``): where values live, and in which way each op is computed;
``improving.py`` compares plans, and finds one that fits into memory. ``writing/`` writes the program of a
plan, and ``finishing/`` makes of it what suits the compilers that run it.

``rules/partition`` says along which factors an op may be computed in parts, what that takes and which way is
the cheapest. ``layouts.py`` has how a tensor lies on the devices, ``reshards/`` gets it from one layout to
another, ``walk.py`` decides which values are resharded for what, and ``executions.py`` says how often ops
run.
"""
