"""Ops of other dialects (tosa, linalg, arith, math, tensor) written in StableHLO, so that XLA runs them.

Comes in: a module, whole or local. Goes out: a copy of it, in which each such op is written as the rules say
(``rules/ops/lowering.dl``): by a formula, by the loops that its op rule has, or by a function for its family.
"""
