"""What is done to an annotated module before it is planned for.

In comes the module; out comes a copy of it that says which op each of its own was. Small functions take the
place of their calls (``calls.py``), parts with halos or at offsets become equal blocks (``blocks.py``), rows
are cut out before they are joined (``cutting.py``), a batch that picks its own rows has batching dimensions
(``batching.py``), and what a user's function says that devices compute takes the place of its op
(``computations.py``).
"""
