"""From an annotated module to the program that each device runs.

In come a module in which every value has its sharding, and the rulebook of the run (``partitioning.py``);
out comes a module whose tensors are the parts that one device holds, with the collectives that move them
(``device_program.py``).

``rules/partition`` says along which factors an op may be computed in parts, what that takes and which way
is the cheapest. Here it is carried out: ``choice/`` asks the rules and finds where values live,
``reshards/`` gets a tensor from one layout to another, ``local/`` writes an op for one device.
``layouts.py`` has how a tensor lies on the devices, ``building.py`` writes ops and collectives, and
``reading.py`` has what the module says of values. ``program.py`` walks over the module, ``values.py``
has what has become of its values, and ``bypasses.py`` which of them are read past what cuts them.
``improving.py`` walks again with better homes; ``executions.py`` says how often ops run. ``finishing/``
makes of what is written what suits the compilers that run it.
"""
