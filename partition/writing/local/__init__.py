"""How an op is written for one device.

In come an op, its way, and the parts of its operands. Out come the parts of its results: computed
(``local.py``, ``windows.py`` for sliding windows), passed on (``flow.py``), or computed once (``alone.py``).
"""
