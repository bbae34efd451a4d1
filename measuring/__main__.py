"""The commands that measure a machine and fit its numbers: ``python -m shardlog.measuring``."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from ..console.parser import Parser
from ..console.status import status_of
from . import comparing, estimate, fit, measure, programs

_NAME = "python -m shardlog.measuring"


def _parser() -> Parser:
    parser = Parser(prog=_NAME, description="Measures a machine, and fits its numbers.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    drawn = commands.add_parser("draw", help="draw programs of one op or a few; needs no GPU")
    drawn.add_argument("rounds", type=int, help="how many programs of each kind, such as 4")
    drawn.add_argument("out", type=Path, help="a file of programs, such as programs.json.gz")
    lowered = "the platform to lower for (default: cuda)"
    drawn.add_argument("--platform", choices=[*programs.ARGUMENT_BYTES], default="cuda", help=lowered)
    drawn.set_defaults(run=lambda given: programs.draw(given.rounds, given.out, given.platform))

    run = commands.add_parser("run", help="run programs on this machine, and write their times")
    run.add_argument("programs", type=Path, help="what draw wrote")
    run.add_argument("out", type=Path, help="a file of measured programs, such as measured.json.gz")
    run.add_argument("--seconds", type=float, default=900.0, help="stop after this long (default: 900)")
    run.add_argument("--platform", choices=["gpu", "cpu"], default="gpu", help="the device (default: gpu)")
    run.set_defaults(run=lambda given: measure.run(given.programs, given.out, given.seconds, given.platform))

    estimates = commands.add_parser(
        "estimate", help="write the estimates of XLA for TPUs for programs; needs no TPU"
    )
    estimates.add_argument("programs", type=Path, help="the output of draw, with --platform tpu")
    estimates.add_argument("out", type=Path, help="a file of estimated programs, such as estimated.json.gz")
    estimates.add_argument("--target", default="tpu:v5e:2x2", help="as of compile (default: tpu:v5e:2x2)")
    estimates.add_argument(
        "--seconds", type=float, default=1800.0, help="stop after this long (default: 1800)"
    )
    estimates.set_defaults(
        run=lambda given: estimate.run(given.programs, given.out, given.target, given.seconds)
    )

    fitted = commands.add_parser(
        "fit", help="fit the table [kernels] or [ops] of a machine to measured programs"
    )
    fitted.add_argument("data", nargs="+", help="what run wrote")
    fitted.add_argument("--topology", default="h100", help="the machine to begin with (default: h100)")
    fitted.add_argument("--keep", nargs="*", default=[], help="numbers that stay as they are")
    validating = "fit five times, each time without another fifth, and judge the predictions for that fifth"
    fitted.add_argument("--validate", action="store_true", help=validating)
    fitted.set_defaults(run=lambda given: fit.fitted(given.data, given.topology, given.keep, given.validate))

    compared = commands.add_parser("compare", help="compare predicted times with measured ones, by kind")
    comparing.add_arguments(compared)
    compared.set_defaults(run=comparing.compare)
    return parser


def main() -> int:
    """Carries out a command. Returns its exit status."""

    def carry_out() -> None:
        given: Namespace = _parser().parse_args()
        given.run(given)

    return status_of(carry_out, _NAME)


if __name__ == "__main__":
    sys.exit(main())
