"""In which way each op is computed in parts, and where values live.

In come what the op rules say of an op (``facts/knowledge.py``) and the layouts of its operands and results;
out come ways with their prices, as ``rules/partition`` has them (``choosing.py``), and what each is for
(``purposes.py``). Where values may live elsewhere than propagation chose, ``homes.py`` finds homes by which
all ops together cost least (``least/``): what is chosen, once for what repeats (``variables.py``), what it
may be (``candidates.py``), and what that costs (``costs.py``).
"""
