"""The questions: each reads a run and gives its answer as data."""
