"""From a plan to the program that each device runs.

In come an annotated module and a ``Plan``. Out comes a draft, with the collectives and the purpose of each
(``writer.py``). ``building.py`` writes ops and collectives, ``neutral.py`` knows the neutral elements of ops,
``steps.py`` writes reshards, and ``local/`` writes an op for one device.
"""
