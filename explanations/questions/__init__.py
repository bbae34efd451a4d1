"""The questions: each reads a run, or a program of it, and gives an answer."""
