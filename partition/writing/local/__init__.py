"""How an op is written for one device.

In come an op, the way in which it is computed and the parts of its operands; out come the parts of its
results: computed (``local.py``, and ``windows.py`` for what slides), handed on (``flow.py``), or computed
once (``alone.py``).
"""
