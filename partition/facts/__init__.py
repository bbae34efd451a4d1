"""Facts about an annotated module, before anything is decided.

In comes the module. Out come ``Facts``: what each op needs and gives, and what propagation's own plan sends
(``recording.py``, which writes no program). ``knowledge.py`` asks the rules about ops. ``reading.py`` reads
the layouts of the module's values. ``kinds.py`` numbers ops and values. ``bypasses.py`` finds slices and
padding that users skip, and ``recipes.py`` remembers how equal ops are computed.
"""
