"""The reference of the command line, made from its parser: ``python -m shardlog.cli.reference``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping

from . import parser
from .choosing import choice_arguments
from .running import common_arguments

_HEAD = """\
# Command line

Made from the parser by `python -m shardlog.cli.reference > docs/cli.md`. `shardlog COMMAND --help` prints the
same.

All commands exit with 0; with 1 if a check found something; with 2 for bad input, after one message on
standard error. `--json` prints JSON where a command has it, and `--schema` its JSON Schema.
"""
# What several commands share, described once.
_SHARED = {"options-of-a-run": "Options of a run", "the-partitioned-program": "The partitioned program"}


def reference() -> str:
    """The page."""
    commands = list(_commands(parser(), "shardlog"))
    rows = [f"| [`{name}`](#{_anchor(name)}) | {_text(about)} |" for name, about, _ in commands]
    parts = [_HEAD, "| command | |\n|---|---|\n" + "\n".join(rows) + "\n"]
    shared = {
        anchor: [action for action in command._actions if action.option_strings[0:1] not in ([], ["-h"])]
        for anchor, command in zip(_SHARED, (common_arguments(), choice_arguments()), strict=True)
    }
    parts += ["\n".join([f"## {title}\n", *_table(shared[anchor])]) for anchor, title in _SHARED.items()]
    shared_keys = {anchor: {_key(action) for action in actions} for anchor, actions in shared.items()}
    parts += [_section(name, about, command, shared_keys) for name, about, command in commands]
    return "\n".join(parts)


def _commands(
    command: argparse.ArgumentParser, name: str
) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """The subcommands of a command, with their descriptions. A group of commands does not count."""
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            about = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for each, below in action.choices.items():
                nested = list(_commands(below, f"{name} {each}"))
                yield from nested or [(f"{name} {each}", about[each], below)]


def _section(
    name: str, about: str, command: argparse.ArgumentParser, shared_keys: Mapping[str, set[tuple[str, ...]]]
) -> str:
    actions = [action for action in command._actions if not _is_hidden(action)]
    keys = {_key(action) for action in actions}
    taken = [anchor for anchor, shared in shared_keys.items() if shared <= keys]
    left = [a for a in actions if not any(_key(a) in shared_keys[anchor] for anchor in taken)]
    lines = [f"## {name}\n", f"{about[:1].upper()}{about[1:]}.\n", *_table(left)]
    if taken:
        links = " and ".join(
            f"[{_SHARED[anchor][:1].lower()}{_SHARED[anchor][1:]}](#{anchor})" for anchor in taken
        )
        lines.append(f"And: {links}.\n")
    return "\n".join(lines)


def _is_hidden(action: argparse.Action) -> bool:
    return isinstance(action, argparse._HelpAction) or action.help == argparse.SUPPRESS


def _key(action: argparse.Action) -> tuple[str, ...]:
    return (*action.option_strings, action.dest)


def _table(actions: Iterable[argparse.Action]) -> list[str]:
    return ["| argument | |", "|---|---|", *map(_row, actions), ""]


def _row(action: argparse.Action) -> str:
    about = _text((action.help or "") % {**vars(action), "default": action.default})
    choices = f"; one of {', '.join(f'`{each}`' for each in action.choices)}" if action.choices else ""
    return f"| {', '.join(_names(action))} | {about}{choices} |"


def _names(action: argparse.Action) -> Iterable[str]:
    """The ways to write an argument."""
    shown = action.metavar if isinstance(action.metavar, str) else action.dest.upper().replace("_", "-")
    if not action.option_strings:
        return [f"`{shown}{' ...' if action.nargs in ('*', '+') else ''}`"]
    value = "" if action.nargs == 0 else f" {shown if not action.choices else action.metavar or 'NAME'}"
    return [f"`{option}{value}`" for option in action.option_strings]


def _text(text: str) -> str:
    """A text for a cell of a table. Words that would be markup become code."""
    linked = re.sub(r"\(docs/(\w+)\.md\)", r"([more](\1.md))", text)
    pattern = r"('[^']*[\[{<*_|][^']*'|(?<![\w(/])[^\s(]*[{<*_\[](?:[^\s)]*[^\s),;])?(?!\())"
    quoted = "".join(
        part if part.startswith("([more]") else re.sub(pattern, lambda m: f"`{m[0]}`", part)
        for part in re.split(r"(\(\[more\]\(\w+\.md\)\))", linked)
    )
    return quoted.replace("|", "\\|")


def _anchor(name: str) -> str:
    return name.replace(" ", "-")


if __name__ == "__main__":
    print(reference(), end="")
