"""Changes to an annotated module before it is planned.

In comes the module. Out comes a copy that knows the original of each op. Small functions are inlined
(``calls.py``). Slices of concatenations are read from their parts (``cutting.py``). Gathers of a batch's own
rows get batching dimensions (``batching.py``). An op may be replaced by the user's function that defines it
on each device (``computations.py``).
"""
