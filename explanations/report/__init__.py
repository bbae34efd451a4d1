"""The report: a run as one HTML page that needs nothing else.

``data.py`` collects what the page shows, ``steps.py`` the derivation of every change, ``folding.py`` the
groups in which the program is drawn; the page itself is ``page.html.j2`` with its styles and scripts.
"""

from .page import report

__all__ = ["report"]
