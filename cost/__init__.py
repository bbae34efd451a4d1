"""The cost of partitioned programs: time on a machine, by the roofline and its links, and memory.

In come a partitioned run and the description of a machine (``machines/*.toml``, or a user's file). Out comes
a ``Cost``: totals, and by collective, layer, op and source line. ``rules/cost`` says how long ops take, and
which values are stored. Or in comes a target (``targets.py``), for which XLA compiles the program ahead of
time. Out comes an ``Ahead``: the memory and the communication of the compiled program.
"""
