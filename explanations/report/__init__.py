"""The report: a run as one HTML page that needs nothing else.

``data.py`` collects what the page shows, ``steps.py`` the derivation of every change, ``cost.py`` what it
costs; the page itself is in ``browser/``: a template with its styles and scripts.
"""

from .page import report

__all__ = ["report"]
