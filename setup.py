"""The build: what pyproject.toml says, and the plans of the rules, so that no command need compile them."""

import sys
from pathlib import Path
from types import ModuleType

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithPlans(build_py):  # type: ignore[misc]
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            _package().compile_ahead(Path(self.build_lib, "shardlog", "rulebook", "plans"))


def _package() -> ModuleType:
    """The module of the rules that ship, from this folder, whatever that is called."""
    package = ModuleType("shardlog")
    package.__path__ = [str(Path(__file__).parent)]
    sys.modules["shardlog"] = package
    from shardlog.rulebook import shipped

    return shipped


setup(cmdclass={"build_py": BuildWithPlans})
