"""Ops of other dialects (tosa, linalg, arith, math, tensor) written in StableHLO, so that XLA runs them.

In comes a module, whole or local. Out comes a copy in which each such op is written by the rules
(``rules/ops/lowering.dl``): by a formula, by the loops of its op rule, or by a function for its family.
"""
