"""From an annotated module to the program that each device runs.

In come a module in which every value has its sharding, and the rulebook of the run; out comes a module
whose tensors are the parts that one device holds, with the collectives that move them
(``device_program.py``).

``rules/partition`` says along which factors an op may be computed in parts, what that takes and which way
is the cheapest. Here it is carried out: ``layouts.py`` has how a tensor lies on the devices,
``planning.py`` the cheapest collectives from one layout to another, ``choosing.py`` asks the rules,
``building.py`` writes ops and collectives, ``reshards.py`` and ``exchange.py`` move data, ``local.py``
makes an op local, ``alone.py`` what happens once. ``program.py`` walks over the module; ``reading.py``
has what the module says of values, ``flow.py`` the ops that hand them on. ``executions.py`` says how
often ops run.
"""
