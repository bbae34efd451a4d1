"""From programs to simpler programs, so that the rest of the engine needs to know less.

In goes the syntax tree of a module, or of a clause. Out comes one without components, lattices, inlined
relations and witnesses of aggregates (before the checks), or without algebraic data types and counters (after
them); or the part that a goal (``magic``) or readers (``narrowing``) need.
"""
