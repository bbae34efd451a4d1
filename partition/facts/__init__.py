"""Facts about an annotated module, before anything is decided.

In comes the module. Out come ``Facts``: the layouts that each op needs and gives, and the collectives of
propagation's own plan (``recording.py``, which writes no program). ``knowledge.py`` asks the rules about ops.
``reading.py`` reads the layouts of the module's values. ``kinds.py`` numbers ops and values. ``bypasses.py``
finds slices and padding that users skip, and ``recipes.py`` remembers how equal ops are computed.
"""
