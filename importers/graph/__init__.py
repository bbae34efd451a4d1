"""Functions laid out for the agenda: items, places, cells, and who is pushed when a place changes.

Comes in: the functions of a module. Goes out: ``Graph``, arrays of numbers.
"""
