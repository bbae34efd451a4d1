"""Automatic sharding: the boundary of a program, chosen with everything inside of it.

In come a module and the options of a search (``options.py``): a mesh or a number of devices, a machine, a
limit on memory, and shardings to keep (``kept.py``). Out comes an ``AutoPlan`` (``plan.py``): a mesh, the
specs of all arguments and results, the cost of the program, and a lower bound. ``ends.py`` reads the
boundary, and which results are state of the next step. ``partition/opening.py`` chooses. ``searching.py``
writes the best programs, computes their cost, and takes the best. ``meshes.py`` lists the meshes of a number
of devices (``automatic.py``).
"""
