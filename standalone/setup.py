"""The build of shardlog-datalog, a package of folders and modules that stand in the root of the repository.

Their imports are relative, so they work in a package of another name. The version and the requirements are
those of shardlog.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from runpy import run_path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py
from setuptools_rust import Binding, RustExtension

NAME = "shardlog_datalog"
FOLDERS = ("console", "datalog", "engine")
MODULES = ("children", "collector", "errors", "interrupt", "markup", "outputs")
EXTRAS = ("arrow", "duckdb", "pydatalog")


class BuildFromRoot(build_py):  # type: ignore[misc]
    """Adds the modules of the root to those beside this file."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        modules: list[tuple[str, str, str]] = super().find_package_modules(package, package_dir)
        if package == NAME:
            modules += [(NAME, module, f"../{module}.py") for module in MODULES]
        return modules


root = tomllib.loads(Path("../pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = {name: root["optional-dependencies"][name] for name in EXTRAS}
setup(
    name="shardlog-datalog",
    version=run_path("../version.py")["__version__"],
    description="Datalog in Python: Soufflé's dialect, facts from arrays and tables, and proofs",
    license=root["license"],
    license_files=["LICENSE"],
    python_requires=root["requires-python"],
    install_requires=[each for each in root["dependencies"] if each.startswith("numpy")],
    extras_require={
        name: [each.replace("shardlog[", "shardlog-datalog[") for each in needed]
        for name, needed in extras.items()
    },
    entry_points={"console_scripts": [f"shardlog-datalog = {NAME}.__main__:main"]},
    packages=[
        NAME,
        *(f"{NAME}.{found}" for found in find_packages("..") if found.split(".")[0] in FOLDERS),
    ],
    package_dir={NAME: NAME, **{f"{NAME}.{folder}": f"../{folder}" for folder in FOLDERS}},
    package_data={NAME: ["py.typed"], f"{NAME}.engine": ["*.pyi"]},
    include_package_data=False,
    rust_extensions=[
        RustExtension(
            f"{NAME}.engine._core",
            path="../engine/core/Cargo.toml",
            binding=Binding.PyO3,
            debug=False,
            optional=True,  # where there is no cargo, the reference in Python takes over
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    cmdclass={"build_py": BuildFromRoot},
    zip_safe=False,
)
