"""The commands of the rule kit: ``shardlog check``, ``ops`` and ``rules show``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .case import Reference


def add_commands(subparsers: Any) -> None:
    """Adds the commands to those of the command line; ``HANDLERS`` carry them out."""
    check = subparsers.add_parser("check", help="check op rules: what they say, and by computing")
    check.add_argument("rules", metavar="RULES", nargs="*", help="rule files; without any, those of shardlog")
    about = "a module with ops to check the rules on; may be repeated"
    check.add_argument("--examples", metavar="MODULE", action="append", default=[], help=about)
    about = "a Python function of NumPy arrays that computes an op, as in @target=package.module:function"
    check.add_argument("--reference", metavar="OP=FUNCTION", action="append", default=[], help=about)

    ops = subparsers.add_parser("ops", help="list the ops of a module with their rules")
    ops.add_argument(
        "module", metavar="MODULE", help="StableHLO as MLIR text or bytecode; - is standard input"
    )
    _add_rules(ops)
    ops.add_argument("--json", action="store_true", help="print rows as JSON instead of a table")

    rules = subparsers.add_parser("rules", help="show the rules of an op")
    show = rules.add_subparsers(dest="what", required=True, metavar="WHAT").add_parser(
        "show", help="print the rules of an op, with a worked example"
    )
    show.add_argument(
        "name", metavar="NAME", help="as in stablehlo.dot_general, or @target for a custom call"
    )
    _add_rules(show)
    about = "a module with such an op, to work out its factors; may be repeated"
    show.add_argument("--examples", metavar="MODULE", action="append", default=[], help=about)


def _add_rules(parser: Any) -> None:
    parser.add_argument(
        "--rules", metavar="FILE", action="append", default=[], help="more op rules; may be repeated"
    )


def _check(options: argparse.Namespace) -> None:
    from ..errors import ShardlogError
    from .check import check_rules

    references = dict(_reference(text) for text in options.reference)
    report = check_rules([Path(p) for p in options.rules], [Path(p) for p in options.examples], references)
    print(report)
    if not report.cases:
        hint = "give ops to check it on: --examples MODULE"
        raise ShardlogError("nothing was checked beyond types", where=", ".join(options.rules), hint=hint)
    if report.wrong:
        raise ShardlogError(f"{len(report.wrong)} wrong", where="check", hint="see above")


def _reference(text: str) -> tuple[str, Reference]:
    """An op's name and the function that computes it."""
    from importlib import import_module

    from ..errors import ShardlogError

    name, _, path = text.partition("=")
    module, _, function = path.partition(":")
    try:
        return name, getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        hint = "as in @target=package.module:function"
        raise ShardlogError(
            f"cannot load the function: {error}", where=f"--reference {text}", hint=hint
        ) from None


def _ops(options: argparse.Namespace) -> None:
    import json

    from ..rulebook import RuleBook
    from .ops import module_ops, ops_text

    source = "-" if options.module == "-" else Path(options.module)
    rows = module_ops(source, RuleBook(Path(p) for p in options.rules))
    if options.json:
        names = ("op", "signatures", "rule", "says")
        print(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2))
    else:
        print(ops_text(rows))


def _show(options: argparse.Namespace) -> None:
    from ..rulebook import RuleBook
    from .show import show

    book = RuleBook(Path(p) for p in options.rules)
    print(show(options.name, book, [Path(p) for p in options.examples]))


HANDLERS: dict[str, Callable[[argparse.Namespace], None]] = {"check": _check, "ops": _ops, "rules": _show}
