"""Tactics: decisions that come into force one after the other, and an account of the effects of each."""
