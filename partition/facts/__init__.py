"""What is known of an annotated module before anything is decided.

In comes the module; out come ``Facts``: what each op needs and gives, and what propagation's own plan sends
(``recording.py``, which writes no program). ``knowledge.py`` asks the rules about ops, ``reading.py`` reads
where the module has its values, ``kinds.py`` lists ops and values by number, ``bypasses.py`` finds values
that are read past what cuts them, and ``recipes.py`` has how ops are computed that are alike.
"""
