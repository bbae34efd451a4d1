"""The version of the package, which ``pyproject.toml`` has too."""

__version__ = "0.1.0"
