"""``python -m shardlog_datalog``, and the command ``shardlog-datalog``: as ``shardlog datalog``."""

from shardlog_datalog import interrupt

interrupt.install()

import os  # noqa: E402
import sys  # noqa: E402
from typing import NoReturn  # noqa: E402

from shardlog_datalog import __version__  # noqa: E402
from shardlog_datalog.console.datalog import FILES, describe  # noqa: E402
from shardlog_datalog.console.parser import Parser, check_texts  # noqa: E402
from shardlog_datalog.console.status import status_of  # noqa: E402

_NAME = "shardlog-datalog"


def main() -> NoReturn:
    """Runs the command line in a process of its own, and ends it."""
    status = status_of(_carry_out, _NAME)
    sys.stderr.flush()
    os._exit(status)  # a signal would show in Python's own end


def _carry_out() -> int | None:
    parser = Parser(prog=_NAME, description="Runs a Datalog program over files of facts, as Soufflé does.")
    parser.add_argument("--version", action="version", version=f"{_NAME} {__version__}")
    parser.set_defaults(parser=parser)
    describe(parser)
    options, rest = parser.parse_known_args()
    parser.refuse_rest(rest)
    check_texts(options, FILES)
    status: int | None = options.carry_out(options)
    return status


if __name__ == "__main__":
    main()
