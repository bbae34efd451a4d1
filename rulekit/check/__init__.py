"""Checks of op rules: an op is computed whole and by parts, and the results are compared."""
