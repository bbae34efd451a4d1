"""Programs and checkouts that some tests need, where a machine has them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def souffle() -> str | None:
    """Stock Soufflé: the program that SOUFFLE names, or the one on the PATH."""
    return os.environ.get("SOUFFLE") or shutil.which("souffle")


def shardy() -> Path | None:
    """The checkout of openxla/shardy that SHARDY names."""
    return Path(os.environ["SHARDY"]) if os.environ.get("SHARDY") else None


def browsers() -> tuple[str, str] | None:
    """A Chromium and its driver, where both are installed."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (chromium, driver) if chromium and driver else None
