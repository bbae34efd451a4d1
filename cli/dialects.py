"""``shardlog simplify``: programs in MLIR's dialects mesh and shard."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ..console.printing import print_json
from .running import add_json

if TYPE_CHECKING:
    from ..console.parser import Commands


def add(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Adds the command."""
    simplify = commands.add_parser(
        "simplify",
        help="remove and merge collectives of a program in MLIR's dialect shard (docs/mesh_shard.md)",
    )
    simplify.add_argument("module", metavar="MODULE", help="a module in shard or mesh; - is standard input")
    about = "apply only this rewrite, such as all-reduce-folder; may be repeated; default: all"
    simplify.add_argument("--rewrite", metavar="NAME", action="append", default=[], help=about)
    about = "assume that all devices have the same arguments, so that a gather of their slices is one of them"
    simplify.add_argument("--same-arguments", action="store_true", help=about)
    about = "a file with more op rules; may be repeated"
    simplify.add_argument("--rules", metavar="FILE", action="append", default=[], help=about)
    about = "the version of LLVM that will read it; default: the version of the module's dialect"
    simplify.add_argument("--dialect-version", choices=("19", "22", "main"), help=about)
    about = "where to write the module; default: standard output"
    simplify.add_argument("-o", "--output", metavar="OUT", help=about)
    add_json(simplify, "print how often each rewrite was done as JSON; writes the module only with -o")
    simplify.set_defaults(carry_out=_simplify)


def _simplify(options: argparse.Namespace) -> None:
    from ..api import run
    from ..exporters.dialects.text import respelled
    from ..importers.dialects.checks import has_whole_collectives
    from ..importers.sources.source import read_program
    from ..importers.sources.text import Text, parse_module
    from ..outputs import output, refuse_loss
    from ..partition.dialects.simplifying import simplify
    from ..rulebook.book import RuleBook

    name = "/dev/stdin" if options.module == "-" else options.module
    refuse_loss([("-o", options.output)], [name, *options.rules])
    with output(options.output) if options.output else nullcontext() as file:
        text, _ = read_program("-" if options.module == "-" else Path(options.module))
        module = parse_module(text)
        if has_whole_collectives(module):
            source = text.data if options.module == "-" else Path(options.module)
            session = run(source, propagation="completion", rules=options.rules)
            local = session.partition("shard", keep_shardings=True, order="rfc").text()
            text, module = Text(local.encode(), text.name), parse_module(Text(local.encode(), text.name))
        with text.places():
            book = RuleBook(map(Path, options.rules))
            done = simplify(module, book, options.rewrite, same_arguments=options.same_arguments)
            written = respelled(module, options.dialect_version).encode()
        if file is not None:
            file.write_bytes(written)
        elif not options.json:
            sys.stdout.buffer.write(written)
    if options.json:
        print_json({"rewrites": done})
