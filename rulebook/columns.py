"""The types of the columns of rules, and rows of relations by the names of their columns.

``tests/rulebook/test_columns.py`` holds them to ``rules/types.dl`` and the declarations.
"""

from __future__ import annotations

# Types of ``rules/types.dl`` whose values have names of their own.
SLOT = "slot_id"
FACTOR = "factor_id"
AXIS = "axis_id"
