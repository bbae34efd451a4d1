"""``python -m shardlog``, and the command ``shardlog``."""

from shardlog import interrupt

interrupt.install()  # before imports that take time

import gc  # noqa: E402
import sys  # noqa: E402

from shardlog.cli import main as _main  # noqa: E402


def main() -> int:
    """Runs the command line in a process of its own; returns the exit status."""
    gc.set_threshold(50_000, 20, 20)  # a run makes many objects and hardly any garbage
    return _main()


if __name__ == "__main__":
    sys.exit(main())
