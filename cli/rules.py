"""``shardlog ops``, ``rules show`` and ``rules check``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ..console.colours import show
from ..console.printing import print_json
from ..runs.options import ON_RULES
from .running import MODULE, add_json, add_options

if TYPE_CHECKING:
    from ..console.parser import Commands
    from ..rulebook.book import RuleBook
    from ..rulekit.case import Reference


def add(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Adds the commands; none of them runs a module, as ``common`` is for."""
    ops = commands.add_parser("ops", help="list the ops of a module and their rules")
    ops.add_argument("module", metavar="MODULE", help=MODULE)
    add_options(ops, *ON_RULES)
    add_json(ops, "print rows as JSON instead of a table")
    ops.set_defaults(carry_out=_ops)

    rules = commands.add_parser("rules", help="show the rules of an op, or check op rules")
    kinds = rules.add_subparsers(dest="what", required=True, metavar="WHAT")
    show = kinds.add_parser("show", help="print the rules of an op, with a worked example")
    show.add_argument(
        "name", metavar="NAME", help="an op, such as stablehlo.dot_general, or @target for a custom call"
    )
    add_options(show, *ON_RULES)
    about = "a module with such an op, for the worked example; may be repeated"
    show.add_argument("--examples", metavar="MODULE", action="append", default=[], help=about)
    show.set_defaults(carry_out=_show)

    check = kinds.add_parser("check", help="check op rules, also by computing each op in parts")
    check.add_argument("rules", metavar="RULES", nargs="*", help="rule files; default: shardlog's own")
    about = "a module with ops on which to check the rules; may be repeated"
    check.add_argument("--examples", metavar="MODULE", action="append", default=[], help=about)
    about = "a Python function of NumPy arrays that computes an op, as in @target=package.module:function"
    check.add_argument("--reference", metavar="OP=FUNCTION", action="append", default=[], help=about)
    add_options(check, *ON_RULES[1:])
    check.set_defaults(carry_out=_check)


def _check(options: argparse.Namespace) -> None:
    from ..errors import ShardlogError
    from ..rulekit.check.check import check_rules

    report = check_rules(
        [Path(p) for p in options.rules],
        [Path(p) for p in options.examples],
        dict(_reference(text) for text in options.reference),
        include_from=options.include_from,
        limits=options.limits,
        shardy=options.shardy,
    )
    show(report)
    if not report.cases:
        hint = "give it ops: --examples MODULE"
        raise ShardlogError("only types were checked", where=", ".join(options.rules), hint=hint)
    if report.wrong:
        raise ShardlogError(f"{len(report.wrong)} wrong", where="rules check", hint="see above")


def _reference(text: str) -> tuple[str, Reference]:
    """An op's name and the function that computes it."""
    from pkgutil import resolve_name

    from ..errors import ShardlogError

    name, _, path = text.partition("=")
    try:
        if ":" not in path:
            raise ValueError("there is no function in it")
        return name, resolve_name(path)
    except (ImportError, AttributeError, ValueError) as error:
        hint = "as in @target=package.module:function"
        raise ShardlogError(
            f"cannot load the function: {error}", where=f"--reference {text}", hint=hint
        ) from None


def _ops(options: argparse.Namespace) -> None:
    from ..rulekit.ops import module_ops, ops_text

    source = "-" if options.module == "-" else Path(options.module)
    rows = module_ops(source, _book(options))
    if options.json:
        names = ("op", "signatures", "rule", "says")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print(ops_text(rows))


def _show(options: argparse.Namespace) -> None:
    from ..rulekit.show import show as show_rules

    book = _book(options)
    print(show_rules(options.name, book, [Path(p) for p in options.examples]))


def _book(options: argparse.Namespace) -> RuleBook:
    """The rules that ``options`` ask for."""
    from ..rulebook.book import RuleBook

    files = map(Path, options.rules)
    return RuleBook(files, include_from=options.include_from, limits=options.limits, shardy=options.shardy)
