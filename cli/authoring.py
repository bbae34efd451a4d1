"""``shardlog fmt``, ``lsp`` and ``profile``: tools for authors of rules."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..console.datalog import add_program, program_of
from ..console.printing import print_json
from .running import add_json

if TYPE_CHECKING:
    from ..console.parser import Commands


def add(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Adds the commands; none of them runs a module, as ``common`` is for."""
    fmt = commands.add_parser("fmt", help="format rule files")
    about = "rule files, or folders of .dl and .rules files; - is standard input; default: this folder"
    fmt.add_argument("rules", metavar="FILE", nargs="*", help=about)
    fmt.add_argument(
        "--check", action="store_true", help="list the files that would change, and write nothing"
    )
    fmt.add_argument("--diff", action="store_true", help="print the changes, and write nothing")
    about = "the file name to assume for standard input; .rules is einsum notation, all else Datalog"
    fmt.add_argument("--stdin-name", metavar="NAME", default="<stdin>", help=about)
    fmt.set_defaults(carry_out=_fmt)

    lsp = commands.add_parser("lsp", help="start the language server for editors")
    lsp.add_argument(
        "--stdio", action="store_true", help="use standard input and output, which is the default"
    )
    lsp.set_defaults(carry_out=_lsp)

    profile = commands.add_parser("profile", help="measure each rule of a Datalog program")
    add_program(profile)
    profile.add_argument("--html", metavar="FILE", help="write an HTML page instead of tables")
    profile.add_argument("--full", action="store_true", help="print everything")
    add_json(profile, "print JSON instead of tables")
    profile.set_defaults(carry_out=_profile)


def _fmt(options: argparse.Namespace) -> int:
    from ..authoring.formatting.files import format_file, format_stream, rule_files
    from ..outputs import write

    if options.rules == ["-"]:
        sys.stdout.write(format_stream(sys.stdin.buffer, options.stdin_name))
        return 0
    # All files are read before the first one is written: an error in one leaves all unchanged.
    changed = [
        formatted
        for file in rule_files(map(Path, options.rules or ["."]))
        if (formatted := format_file(file)).changed
    ]
    for formatted in changed:
        if options.diff:
            sys.stdout.write(formatted.diff())
        else:
            print(formatted.file)
        if not (options.check or options.diff):
            write(formatted.file, formatted.formatted.encode())
    return 1 if changed and (options.check or options.diff) else 0


def _lsp(options: argparse.Namespace) -> None:
    from ..authoring.editing.server import server
    from ..version import __version__

    server(__version__).start_io()


def _profile(options: argparse.Namespace) -> None:
    from ..authoring.profiles.text import profile_text
    from ..outputs import refuse_loss, write

    refuse_loss([("--html", options.html)], [options.program])
    if options.html:
        from ..authoring.profiles.page import page
    program = program_of(options)
    program.read_inputs(options.fact_dir, program.outputs)
    profile = program.profile(*program.outputs)
    if options.html:
        write(options.html, page(profile, f"{options.program}: time and tuples by rule").encode())
    elif options.json:
        print_json(profile.as_json())
    else:
        print(profile_text(profile, full=options.full))
