"""From one layout of a tensor to another.

In come a shape and two layouts; out come the cheapest collectives (``planning.py``), at ``prices.py``.
``exchange.py`` plans how halos are sent to neighbours. ``writing/`` writes what is planned here.
"""
