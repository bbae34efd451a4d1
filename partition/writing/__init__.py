"""From a plan to the program that each device runs.

In come an annotated module and a ``Plan``; out comes a draft, with the collectives and what each is for
(``writer.py``). ``building.py`` writes ops and collectives, ``neutral.py`` has the elements that change
nothing, ``steps.py`` writes reshards, and ``local/`` an op for one device.
"""
