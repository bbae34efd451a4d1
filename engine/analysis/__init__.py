"""Checks of a program's meaning: types, grounded variables, strata, keys."""
