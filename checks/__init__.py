"""Checks of a run: expected shardings, and lints.

Comes in: a run, and a file of expectations or a list of lints. Goes out: findings, each with its cause.
"""
