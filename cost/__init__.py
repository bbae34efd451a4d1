"""The cost of partitioned programs: time on a machine, by the roofline and by its links, and memory.

In come a partitioned run and the description of a machine (``machines/*.toml``, or a file of the user's); out
goes a ``Cost``: totals, and by collective, by layer, by op and by source line. How long something takes, and
what is stored, is said in ``rules/cost``. Or in comes a target (``targets.py``), for which XLA compiles the
program ahead of time; out goes an ``Ahead``: what it takes and moves then.
"""
