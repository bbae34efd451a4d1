"""What makes a program meaningful: types, grounded variables, strata, keys."""
