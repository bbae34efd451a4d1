"""Reshards: from one layout of a tensor to another.

In come a shape and two layouts. Out come the cheapest collectives (``planning.py``), at ``prices.py``.
``exchange.py`` plans how halos are sent to neighbours. ``writing/steps.py`` writes the collectives.
"""
