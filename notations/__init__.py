"""Other notations for shardings, read and written.

Comes in: a module with shardings in another notation. Goes out: the same module with sdy's, and back.
"""
