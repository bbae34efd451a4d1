"""``shardlog why``, ``why-not``, ``conflicts``, ``report``, ``diff`` and ``what-if``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..api import Result
    from . import record
    from .explanation import Explanation
    from .why import Explainer

Run = Callable[[argparse.Namespace], "record.Run"]
Command = Callable[[argparse.Namespace], "int | None"]


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    """Adds the arguments of the commands; ``common`` has those that every run takes."""
    why = commands.add_parser("why", parents=[common], help="say why a value is sharded as it is")
    _value(why)
    why.add_argument("--dim", type=int, metavar="D", help="this dimension only, counted from 0")
    why.add_argument("--axis", metavar="A", help="this mesh axis only")
    why.add_argument(
        "--depth", type=int, default=0, metavar="N", help="show N levels of the proof of every step"
    )
    why.add_argument(
        "--verify", action="store_true", help="check the proofs, and run again with only what is needed"
    )
    graph = why.add_mutually_exclusive_group()
    graph.add_argument("--dot", action="store_true", help="print the derivation as a graph for Graphviz")
    graph.add_argument("--mermaid", action="store_true", help="print the derivation as a Mermaid flowchart")
    why.add_argument("--schema", action=_Schema, help="print the JSON schema of all explanations")
    why_not = commands.add_parser(
        "why-not", parents=[common], help="say why a value is not sharded on an axis"
    )
    _value(why_not)
    why_not.add_argument("--dim", type=int, required=True, metavar="D", help="the dimension, counted from 0")
    why_not.add_argument("--axis", required=True, metavar="A", help="the mesh axis")
    why_not.add_argument("--verify", action="store_true", help="run again without the first culprit")
    conflicts = commands.add_parser(
        "conflicts", parents=[common], help="list tensors that must move, and why"
    )
    _output(conflicts)
    report = commands.add_parser("report", parents=[common], help="write a page that shows all of a run")
    report.add_argument("-o", "--output", metavar="FILE", required=True, help="the HTML file to write")
    diff = commands.add_parser("diff", parents=[common], help="say what differs between two runs, and why")
    about = "another module or saved run; options are for what is run, not for saved runs"
    diff.add_argument("other", metavar="OTHER", help=about)
    about = "OTHER is annotated already, as by Shardy: read it as it stands, without propagation"
    diff.add_argument("--as-is", action="store_true", help=about)
    _output(diff)
    what_if = commands.add_parser(
        "what-if", parents=[common], help="say what differs with other annotations: --annotate and --drop"
    )
    about = "drop the annotation of a value, by name, JAX path or pattern; may be repeated"
    what_if.add_argument("--drop", metavar="VALUE", action="append", default=[], help=about)
    _output(what_if)


class _Schema(argparse.Action):
    """Prints the schema and ends, as ``--help`` does."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, nargs=0)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        import json

        from .explanation import SCHEMA

        print(json.dumps(SCHEMA, indent=2))
        parser.exit()


def _value(parser: argparse.ArgumentParser) -> None:
    names = "an SSA name (%%29, %%arg3, %%29#1), result#0, a JAX path (params['w']) or a place (model.py:42)"
    parser.add_argument("value", metavar="VALUE", help=names)
    _output(parser)


def _output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="leave nothing out")
    parser.add_argument("--json", action="store_true", help="print JSON; docs/explanations.md has the schema")


def handlers(run: Callable[[argparse.Namespace], Result]) -> dict[str, Command]:
    """The commands by name; ``run`` gives the run that the arguments ask for."""
    opened = partial(open_or_run, run)
    return {
        "why": partial(_why, opened),
        "why-not": partial(_why_not, opened),
        "conflicts": partial(_conflicts, opened),
        "diff": partial(_diff, run),
        "what-if": partial(_what_if, opened),
        "report": partial(_report, opened),
    }


def open_or_run(run: Callable[[argparse.Namespace], Result], options: argparse.Namespace) -> record.Run:
    """The saved run that stands in the place of the module, or else the run that the arguments ask for.

    Raises ShardlogError where a saved run is asked to be another one.
    """
    from .saved import is_saved, open_saved

    if not is_saved(Path(options.module)):
        return run(options)
    changed = [name for name in ("mesh", "annotate", "rules", "op_priorities") if getattr(options, name)]
    if changed:
        from ..errors import ShardlogError

        hint = "what-if runs it again with other annotations" if changed == ["annotate"] else "run the module"
        message = f"--{changed[0].replace('_', '-')} cannot change a saved run"
        raise ShardlogError(message, where=options.module, hint=hint)
    return open_saved(options.module)


def _why(run: Run, options: argparse.Namespace) -> None:
    from .why import Explainer

    explainer = Explainer(run(options))
    found = explainer.why(options.value, options.dim, options.axis)
    verdicts = [_verified(explainer, e) if options.verify else {} for e in found]
    if options.json:
        _print_json([e.as_json(proofs=options.full) | v for e, v in zip(found, verdicts, strict=True)])
        return
    if options.dot or options.mermaid:
        from .views import dot, mermaid

        print(dot(found) if options.dot else mermaid(found))
        return
    from .text import why_text

    texts = [] if found else [_nothing(explainer, options)]
    for explanation, verdict in zip(found, verdicts, strict=True):
        text = why_text(explanation, depth=options.depth, full=options.full)
        texts.append(f"{text}\n{_verdict_text(verdict)}" if verdict else text)
    print("\n\n".join(texts))


def _why_not(run: Run, options: argparse.Namespace) -> None:
    from .text import why_not_text
    from .why_not import after_removal, why_not

    result = run(options)
    found = why_not(result, options.value, options.dim, options.axis)
    removals = [after_removal(result, explanation) if options.verify else None for explanation in found]
    entries, texts = [], []
    for explanation, removal in zip(found, removals, strict=True):
        entry, text = explanation.as_json(), why_not_text(explanation, full=options.full)
        if removal is not None:
            entry["verified"] = {"without": removal[0], "then": removal[1]}
            text += f"\n  verified: without the annotation of {removal[0]}, {removal[1]}"
        entries.append(entry)
        texts.append(text)
    if options.json:
        _print_json(entries)
    else:
        print("\n\n".join(texts))


def _conflicts(run: Run, options: argparse.Namespace) -> None:
    from .conflicts import conflicts
    from .text import conflicts_text

    found = conflicts(run(options))
    if options.json:
        from dataclasses import asdict

        _print_json([asdict(conflict) for conflict in found])
        return
    print(conflicts_text(found, full=options.full))


def _report(run: Run, options: argparse.Namespace) -> None:
    from ..errors import ShardlogError
    from .report import report

    page = report(run(options))
    try:
        Path(options.output).write_text(page, encoding="utf-8")
    except OSError as error:
        raise ShardlogError(f"cannot write: {error.strerror}", where=options.output) from error


def _diff(run: Callable[[argparse.Namespace], Result], options: argparse.Namespace) -> int:
    """Returns 1 where tensors are sharded otherwise."""
    from .diff import diff
    from .diff_text import diff_text
    from .saved import is_saved, open_saved

    runs = []
    for name, as_is in ((options.module, False), (options.other, options.as_is)):
        strategy = "none" if as_is else options.strategy
        side = argparse.Namespace(**{**vars(options), "module": name, "strategy": strategy})
        runs.append(open_saved(name) if is_saved(Path(name)) else run(side))
    found = diff(*runs)
    if options.json:
        _print_json(found.as_json())
    else:
        print(diff_text(found, full=options.full))
    return int(bool(found.tensors))


def _what_if(run: Run, options: argparse.Namespace) -> None:
    from .diff_text import what_if_text
    from .what_if import what_if

    annotate, options.annotate = options.annotate, []
    found = what_if(run(options), annotate, options.drop)
    if options.json:
        _print_json(found.as_json())
    else:
        print(what_if_text(found, full=options.full))


def _verified(explainer: Explainer, explanation: Explanation) -> dict[str, Any]:
    """What ``--verify`` found. Raises ProofError where a proof is wrong."""
    from .replay import replay

    checked = explainer.check_proofs(explanation)
    verdict = replay(explainer.result, explanation)
    also = [explainer.annotation(cell).value for cell in verdict.also]
    return {"verified": {"proof_steps": checked, "derived_again": verdict.holds, "also_needed": also}}


def _verdict_text(verdict: dict[str, Any]) -> str:
    found = verdict["verified"]
    again = "derived again with these annotations alone"
    if not found["derived_again"]:
        also = ", ".join(found["also_needed"]) or "others"
        again = f"not derived with these annotations alone: the order of turns depends on those of {also} too"
    return f"  verified: {found['proof_steps']} proof steps; {again}"


def _nothing(explainer: Explainer, options: argparse.Namespace) -> str:
    value = explainer.values.find(options.value)[0]
    where = "" if options.dim is None else f" in dim {options.dim}"
    axis = "any axis" if options.axis is None else f'"{options.axis}"'
    hint = (
        "why-not says what stopped it"
        if options.axis
        else "why-not --dim D --axis A says what stopped an axis"
    )
    return f"{value.name} : {value.type} is not sharded on {axis}{where}; {hint}"


def _print_json(found: Any) -> None:
    import json

    print(json.dumps(found, indent=2))
