"""The stubs of the parts in Rust are compared with these by mypy's stubtest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .support.tools import CRATES


@pytest.mark.core
def test_stubs_say_what_the_cores_have(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nfollow_imports = skip\n")  # a quarter of the time
    modules = [f"shardlog.{package}._core" for package in CRATES]
    command = [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", str(config), *modules]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
