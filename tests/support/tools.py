"""Programs and checkouts that some tests need, where a machine has them."""

from __future__ import annotations

import importlib
import os
import re
import shutil
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

CRATES = ("engine", "importers", "partition.choice.least")  # the packages with a part in Rust


def core(package: str = "engine") -> Any:
    """The part of a package in Rust; None unless all of these parts are built."""
    with suppress(ImportError):
        return {each: importlib.import_module(f"shardlog.{each}._core") for each in CRATES}[package]
    return None


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


def chromium(*arguments: str, **capabilities: Any) -> Any:
    """A driver of Chromium without a window. Raises LookupError where it is not installed."""
    from selenium import webdriver

    found = browsers()
    if found is None:
        raise LookupError("install Chromium and its driver first")
    options = webdriver.ChromeOptions()
    options.binary_location = found[0]
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", *arguments):
        options.add_argument(f"--{argument}")
    for name, value in capabilities.items():
        options.set_capability(f"goog:{name}", value)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(found[1]))


def libtpu() -> str | None:
    """The version of libtpu, where it is the one that JAX asks for: another one has another Shardy."""
    try:
        asked = re.search(r"libtpu==([\d.]+)\*", " ".join(requires("jax") or ()))
        found = version("libtpu")
    except PackageNotFoundError:
        return None
    return found if asked is not None and f"{found}.".startswith(asked[1]) else None


def cuda() -> str | None:
    """The version of XLA's plugin for CUDA."""
    for name in ("jax-cuda13-plugin", "jax-cuda12-plugin"):
        with suppress(PackageNotFoundError):
            return version(name)
    return None


def gpu() -> str | None:
    """The version of XLA's plugin for CUDA, where there is a GPU for it."""
    return cuda() if shutil.which("nvidia-smi") and list(Path("/dev").glob("nvidia[0-9]*")) else None


def stablehlo() -> Path | None:
    """A checkout of openxla/stablehlo, for its interpreter tests."""
    found = os.environ.get("STABLEHLO")
    return Path(found) if found and (Path(found) / "stablehlo" / "tests" / "interpret").is_dir() else None
