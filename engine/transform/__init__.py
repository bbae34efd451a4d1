"""Programs to simpler programs: what the rest of the engine need not know is written with less.

In goes the syntax tree of a module, or of a clause; out comes one without components, lattices, inlined
relations and witnesses of aggregates (before the checks), without algebraic data types and counters (after
them), and what a goal asks for (``magic``).
"""
