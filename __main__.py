"""``python -m shardlog``, and the command ``shardlog``."""

from shardlog import interrupt

interrupt.install()  # before imports that take time

import gc  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from typing import Any, NoReturn  # noqa: E402

from shardlog.cli import main as _main  # noqa: E402


def main() -> NoReturn:
    """Runs the command line in a process of its own, and ends it."""
    gc.set_threshold(200_000, 20, 20)  # a run makes many objects and hardly any garbage
    kept = list[Any]()  # which is never freed
    status = _main(kept=kept)
    sys.stderr.flush()
    os._exit(status)  # Python's own end takes time, and a signal would show in it


if __name__ == "__main__":
    main()
