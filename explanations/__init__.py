"""Explanations: why a tensor is sharded so, why not, what must move, and what differs between two runs."""
