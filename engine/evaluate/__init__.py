"""Evaluation: the program as Python sees it, and the reference evaluator."""
