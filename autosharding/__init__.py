"""Automatic sharding: the boundary of a program, chosen with everything inside of it.

In come a module and what is asked of it (``options.py``): a mesh or a number of devices, a machine, a limit
on memory, shardings that stay (``kept.py``). Out comes an ``AutoPlan`` (``plan.py``): a mesh, the specs of
all arguments and results, what the program costs so, and a lower bound. ``ends.py`` reads the boundary and
which state goes around; ``partition/opening.py`` chooses; ``searching.py`` writes the best programs, has them
costed and takes the best; ``meshes.py`` lists the meshes of a number of devices (``automatic.py``).
"""
