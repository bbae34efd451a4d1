"""From one layout of a tensor to another.

In come a shape and two layouts; out come the cheapest collectives (``planning.py``), at ``prices.py``,
and the ops that carry them out (``steps.py``). ``exchange.py`` sends halos to neighbours.
"""
