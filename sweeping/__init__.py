"""Sweeps: plans for models on meshes, machines and limits of memory, each a task for any worker.

In comes a TOML file (``asked.py``), which says the tasks (``tasks.py``). Workers are processes, Ray's or
Dask's (``executors.py``). ``running.py`` gives them the tasks and writes a file for each result, so that a
sweep that was interrupted goes on. Out come a table and a plot (``results.py``).
"""

from __future__ import annotations

KINDS = ("processes", "ray", "dask")  # of workers, see ``executors.py``
