"""The report: a run as one HTML page that needs nothing else.

``data.py`` collects the data of the page, ``steps.py`` the derivation of every change, and ``cost.py`` the
costs. The page itself is in ``browser/``: a template with its styles and scripts.
"""

from .page import report

__all__ = ["report"]
