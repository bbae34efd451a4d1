"""The least sum of terms over variables with a few values each.

In come terms, and the cost of each value on its own (``sums.py``). Out come the best choice and a lower bound
(``least.py``). ``starts.py`` finds starting points, ``forests.py`` moves trees of variables at once, and
``folding.py`` finds equal variables.
"""
