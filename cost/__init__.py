"""The cost of partitioned programs: time on a machine, by the roofline and by its links, and memory.

In come a partitioned run and the description of a machine (``machines/*.toml``, or a file of the user's); out
goes a ``Cost``: totals, and by collective, by op and by source line. How long something takes is said in
``rules/cost``.
"""
