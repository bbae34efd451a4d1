"""Programs carried out by stock Soufflé, where it is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from ..children import carry_out
from ..errors import ShardlogError
from ..outputs import output_folder


def run_souffle(
    program: str, facts: str, folder: str | None, flags: Sequence[str] = (), jobs: int = 1
) -> list[str]:
    """Runs a program with Soufflé's interpreter, from SOUFFLE or the PATH, and further ``flags``. Returns its
    warnings. Either all files of ``folder`` are written or none; None: everything goes to standard output.
    Raises ShardlogError if it is not installed, or if it fails."""
    souffle = os.environ.get("SOUFFLE") or shutil.which("souffle")
    if souffle is None:
        hint = "install it, or name it in SOUFFLE"
        raise ShardlogError("Soufflé is not on the PATH", where="--backend souffle", hint=hint)
    command = [souffle, "-F", facts, "-j", str(jobs), *flags]
    if folder is None:
        return _run([*command, "-D", "-", program], program)
    with output_folder(folder) as written:
        return _run([*command, "-D", str(written), program], program)


def _run(command: list[str], program: str) -> list[str]:
    try:
        status, printed = carry_out(command)
    except OSError as error:
        raise ShardlogError(f"cannot be run: {error.strerror}", where=command[0]) from None
    lines = [line for line in printed.splitlines() if line.strip()]
    if status:
        reason = next((line for line in lines if "rror" in line), f"exit status {status}")
        raise ShardlogError(f"Soufflé says: {reason}", where=program)
    return lines
