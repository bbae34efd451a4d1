"""``python -m shardlog``, and the command ``shardlog``."""

import sys

from shardlog.cli import main

if __name__ == "__main__":
    sys.exit(main())
