"""Collectives that become one, and those that are erased because others send the same.

In comes a module with collectives; out comes one with fewer. ``blocks.py`` reads the blocks with collectives.
``duplicates.py`` finds collectives that send the same data, ``groups.py`` independent ones that can be sent
together. ``combining.py`` writes these as one op.
"""
