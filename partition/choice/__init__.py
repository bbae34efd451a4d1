"""The way to compute each op in parts, and the layouts of values.

In come the rules' facts about an op (``facts/knowledge.py``) and the layouts of its operands and results. Out
come ways with their prices, by ``rules/partition`` (``choosing.py``), and the purpose of each collective
(``purposes.py``). If values may have other layouts than propagation chose, ``homes.py`` finds the layouts by
which all ops together cost least (``least/``): the variables, once for repeated layers (``variables.py``),
their candidates (``candidates.py``), and their costs (``costs.py``). ``problem.py`` sets that up.
"""
