"""The least sum of terms over variables with a few values each.

In come terms, and what each value costs alone (``sums.py``); out come the best choice and a lower bound
(``least.py``). ``starts.py`` has where the search begins, ``forests.py`` moves trees of variables at once,
and ``folding.py`` finds variables that are alike.
"""
