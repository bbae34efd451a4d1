"""``shardlog why``, ``why-not``, ``conflicts``, ``report``, ``diff``, ``what-if`` and ``mutate``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..console.colours import show
from ..console.printing import print_json
from ..errors import ShardlogError
from ..runs.options import PROPAGATIONS
from .choosing import asked_of, checked_choice, choice_arguments, choice_of, refuse_choice
from .running import Progress, add_json, inputs, open_or_run, opened, refuse_changes, session_of, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..console.parser import Commands
    from ..explanations.answers.pins import ChosenSharding
    from ..explanations.answers.why import Explanation
    from ..explanations.questions.why import Explainer
    from ..session import Session


def add(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Adds the commands; ``common`` has the arguments that every run takes."""
    _add_why(commands, common)
    _add_why_not(commands, common)
    conflicts = commands.add_parser(
        "conflicts",
        parents=[common, choice_arguments()],
        help="list the tensors that must be resharded, and why",
    )
    about = "print at most N entries, those with most bytes; default: 6, and all with --full or --json"
    limit = whole_number(1, "is not a limit: expected a whole number, one or more")
    conflicts.add_argument("--limit", metavar="N", type=limit, help=about)
    _output(conflicts)
    conflicts.set_defaults(carry_out=_conflicts)
    report = commands.add_parser(
        "report", parents=[common, choice_arguments()], help="write an HTML page about a run"
    )
    report.add_argument("-o", "--output", metavar="FILE", required=True, help="the HTML file to write")
    report.set_defaults(carry_out=_report)
    _add_diff(commands, common)
    _add_what_if(commands, common)
    _add_mutate(commands, common)


def _add_why(commands: Commands, common: argparse.ArgumentParser) -> None:
    program = choice_arguments(
        "for --collective; for a value, --no-keep-shardings also explains why the program with the fewest "
        "bytes, or the least time on --topology, shards it otherwise than propagation did"
    )
    why = commands.add_parser("why", parents=[common, program], help="explain why a value has its sharding")
    _value(why, optional=True)
    about = "explain collective number N of `shardlog partition --list`"
    why.add_argument("--collective", type=int, metavar="N", help=about)
    why.add_argument("--dim", type=int, metavar="D", help="only this dimension, counted from 0")
    why.add_argument("--axis", metavar="A", help="only this mesh axis")
    levels = whole_number(0, "is not a number of levels: expected zero or more")
    why.add_argument("--depth", type=levels, metavar="N", help="print N levels of the proof of every step")
    why.add_argument(
        "--verify",
        action="store_true",
        help="check the proofs, and run again with only the annotations that they need",
    )
    graph = why.add_mutually_exclusive_group()
    graph.add_argument("--dot", action="store_true", help="print the derivation as a graph for Graphviz")
    graph.add_argument("--mermaid", action="store_true", help="print the derivation as a Mermaid flowchart")
    why.set_defaults(carry_out=_why, keep_shardings=None)


def _add_why_not(commands: Commands, common: argparse.ArgumentParser) -> None:
    why_not = commands.add_parser(
        "why-not", parents=[common], help="explain why a value is not sharded on an axis"
    )
    _value(why_not)
    why_not.add_argument("--dim", type=int, required=True, metavar="D", help="the dimension, counted from 0")
    why_not.add_argument("--axis", required=True, metavar="A", help="the mesh axis")
    why_not.add_argument(
        "--verify", action="store_true", help="run again without the first annotation that stops it"
    )
    why_not.set_defaults(carry_out=_why_not)


def _add_diff(commands: Commands, common: argparse.ArgumentParser) -> None:
    diff = commands.add_parser(
        "diff", parents=[common], help="compare two runs and explain their differences"
    )
    about = "another module or saved run; options apply to modules only"
    diff.add_argument("other", metavar="OTHER", help=about)
    about = "read OTHER without propagation, as a module that is annotated already, for example by Shardy"
    diff.add_argument("--as-is", action="store_true", help=about)
    about = "the algorithm for OTHER, if it differs from that for MODULE"
    diff.add_argument("--other-propagation", choices=PROPAGATIONS, help=about)
    _output(diff)
    diff.set_defaults(carry_out=_diff)


def _add_what_if(commands: Commands, common: argparse.ArgumentParser) -> None:
    what_if = commands.add_parser(
        "what-if",
        parents=[common, choice_arguments("the program whose bytes are counted; --pin gives the change")],
        help="try other annotations (--annotate, --drop), shardings (--pin) or options of ops (--option)",
    )
    about = "drop the annotation of a value, given by name, JAX path or pattern; may be repeated"
    what_if.add_argument("--drop", metavar="VALUE", action="append", default=[], help=about)
    _output(what_if)
    what_if.set_defaults(carry_out=_what_if)


def _add_mutate(commands: Commands, common: argparse.ArgumentParser) -> None:
    mutate = commands.add_parser(
        "mutate",
        parents=[common, choice_arguments("the one that is measured, before and after")],
        help="give ops other sharding options (--option) in a completed module, and measure the change",
    )
    _output(mutate)
    mutate.set_defaults(carry_out=_mutate, keep_shardings=None)


def _value(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    names = "an SSA name (%%29, %%arg3, %%29#1), result#0, a JAX path (params['w']) or a place (model.py:42)"
    parser.add_argument("value", metavar="VALUE", nargs="?" if optional else None, help=names)
    _output(parser)


def _output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="print everything")
    add_json(parser, "print JSON instead of text")


def _why(options: argparse.Namespace) -> None:
    from ..explanations.questions.unreduced import unreduced

    if (options.collective is None) == (options.value is None):
        hint = "shardlog why MODULE VALUE, or shardlog why MODULE --collective N"
        raise ShardlogError("give a value or a collective", where="why", hint=hint)
    if options.collective is not None:
        _refuse(options, ("dim", "axis", "depth", "verify", "dot", "mermaid"), "a value", "VALUE")
        _why_collective(options)
        return
    if options.json and (options.dot or options.mermaid):
        form, hint = f"--{'dot' if options.dot else 'mermaid'}", "leave out one of the two"
        raise ShardlogError("--json prints another document", where=form, hint=hint)
    moved = options.keep_shardings is False
    if not moved:
        options.keep_shardings = None  # values are explained this way anyway
        refuse_choice(options, "a program", "--collective N or --no-keep-shardings")
    session = open_or_run(options)
    explainer = session.explainer
    explanations = explainer.why(options.value, options.dim, options.axis)
    verdicts = [_verified(session, e) if options.verify else {} for e in explanations]
    pending = [] if options.dim is not None else unreduced(explainer, options.value, options.axis)
    otherwise: tuple[ChosenSharding, ...] = ()
    if moved:
        from ..explanations.questions.pins import chosen

        otherwise = chosen(session.programs, options.value, checked_choice(options))
    if options.json:
        entries = [e.as_json(proofs=options.full) | v for e, v in zip(explanations, verdicts, strict=True)]
        entries += [each.as_json() for each in pending]
        whole = {"why": entries, "chosen": [each.as_json() for each in otherwise]}
        print_json(whole if moved else entries)
        return
    if options.dot or options.mermaid:
        from ..explanations.answers.graphs import dot, mermaid

        print(dot(explanations) if options.dot else mermaid(explanations))
        return
    if note := explainer.values.note(options.value):
        show(f"{note}\n")
    if moved:
        _show_chosen(session, options, otherwise)
    for answer in pending:
        show(f"{answer}\n" if explanations else str(answer))
    if explanations:
        _show_why(options, explanations, verdicts)
    elif not pending:
        show(_nothing(explainer, options))


def _show_chosen(
    session: Session, options: argparse.Namespace, otherwise: tuple[ChosenSharding, ...]
) -> None:
    """Prints why the program shards a value otherwise than propagation did, or that it does not."""
    show(choice_of(options).line)
    for each in otherwise:
        from ..explanations.answers.pins import chosen_text

        show(f"{chosen_text(each, full=options.full)}\n")
    if not otherwise:
        from ..explanations.questions.pins import unchosen

        show(f"{options.value}: {unchosen(session.result, options.value)}\n")


def _show_why(
    options: argparse.Namespace, explanations: Sequence[Explanation], verdicts: Sequence[dict[str, Any]]
) -> None:
    """Prints explanations, each with its verdict if it was verified."""
    from ..explanations.answers.text import folded
    from ..explanations.answers.why import why_text

    texts = []
    for explanation, verdict in zip(explanations, verdicts, strict=True):
        text = why_text(explanation, depth=options.depth or 0, full=options.full)
        texts.append(f"{text}\n{_verdict_text(verdict, explanation)}" if verdict else text)
    show(folded([explanation.site for explanation in explanations], texts, full=options.full))


def _refuse(options: argparse.Namespace, names: Sequence[str], about: str, wanted: str) -> None:
    """Refuses options that do not concern the question."""
    for name in names:
        given = getattr(options, name)
        if given is not None and given is not False and given != []:
            option = f"--{name.replace('_', '-')}"
            raise ShardlogError(
                f"{option} applies only to {about}",
                where=option,
                hint=f"add {wanted}, or leave the option out",
            )


def _why_collective(options: argparse.Namespace) -> None:
    from ..explanations.answers.collective import moved_text

    options.keep_shardings = bool(options.keep_shardings)
    checked_choice(options)
    moved = asked_of(options, open_or_run(options)).why(options.collective)
    if options.json:
        print_json(moved.as_json())
    else:
        show(moved_text(moved, full=options.full))


def _why_not(options: argparse.Namespace) -> None:
    from ..explanations.answers.text import folded
    from ..explanations.answers.why_not import why_not_text
    from ..explanations.questions.why_not import after_removal, why_not

    session = open_or_run(options)
    explanations = why_not(session.explainer, options.value, options.dim, options.axis)
    removals = [after_removal(session.result, each) if options.verify else None for each in explanations]
    entries, texts = [], []
    for explanation, removal in zip(explanations, removals, strict=True):
        entry, text = explanation.as_json(), why_not_text(explanation, full=options.full)
        if removal is not None:
            entry["verified"] = {"without": removal[0], "then": removal[1]}
            text += f"\n  verified: without the annotation of {removal[0]}, {removal[1]}"
        entries.append(entry)
        texts.append(text)
    if options.json:
        print_json(entries)
    else:
        show(folded([explanation.site for explanation in explanations], texts, full=options.full))


def _conflicts(options: argparse.Namespace) -> None:
    from ..explanations.answers.conflicts import conflicts_text

    choice = checked_choice(options)
    session = open_or_run(options)
    with Progress() as progress:
        progress("looking for conflicts", 0.8)
        conflicts = session.conflicts_of(choice)
    if options.json:
        total = sum(conflict.bytes for conflict in conflicts)
        entries = [conflict.as_json() for conflict in conflicts[: options.limit]]
        print_json({"program": str(choice), "bytes": total, "conflicts": entries})
    else:
        show(conflicts_text(conflicts, choice, full=options.full, most=options.limit))
    session.keep(conflicts)


def _report(options: argparse.Namespace) -> None:
    from ..outputs import output, refuse_loss

    choice = checked_choice(options)
    refuse_loss([("-o", options.output)], inputs(options))
    with output(options.output) as file:
        session = open_or_run(options)
        with Progress() as progress:
            file.write_text(session.report_html(progress, choice), encoding="utf-8")


def _diff(options: argparse.Namespace) -> int:
    """Returns 1 where tensors are sharded otherwise."""
    from ..explanations.answers.diff import diff_text
    from ..runs.records.saved_file import is_saved

    sessions: list[Session] = []
    saved = [is_saved(Path(name)) for name in (options.module, options.other)]
    if all(saved):  # otherwise, the options belong to the module
        refuse_changes(options, options.module)
    if saved[1] and options.as_is:
        raise ShardlogError("--as-is cannot change a saved run", where=options.other, hint="give the module")
    for name, kept, as_is in zip((options.module, options.other), saved, (False, options.as_is), strict=True):
        changes = {"strategy": "none"} if as_is else {}
        if sessions and options.other_propagation:
            changes["propagation"] = options.other_propagation
        side = argparse.Namespace(**{**vars(options), "module": name, **changes})
        sessions.append(opened(name) if kept else session_of(side, names=True))
    first, second = sessions
    differences = first.diff(second)
    if options.json:
        print_json(differences.as_json())
    else:
        show(diff_text(differences, full=options.full))
    return int(bool(differences.tensors))


def _what_if(options: argparse.Namespace) -> None:
    from ..explanations.answers.what_if import what_if_text

    annotate, options.annotate = options.annotate, []
    sharding_options, options.sharding_option = options.sharding_option, []
    if options.pins:
        _pin(options, annotate or sharding_options)
        return
    if not (annotate or options.drop or sharding_options):
        hint = "give --annotate, --drop or --pin, or --option with completion, each as often as you like"
        raise ShardlogError("there is nothing to change", where="what-if", hint=hint)
    choice = checked_choice(options)
    effects = open_or_run(options).what_if(annotate, options.drop, sharding_options, **choice.options)
    if options.json:
        print_json(effects.as_json())
    else:
        show(what_if_text(effects, full=options.full))


def _pin(options: argparse.Namespace, annotate: Any) -> None:
    from ..explanations.answers.pins import pinned_text
    from ..explanations.questions.pins import pin

    if annotate or options.drop:
        hint = "use one of them at a time"
        raise ShardlogError("--pin together with --annotate, --drop or --option", where="what-if", hint=hint)
    choice = checked_choice(options)
    pinned = pin(open_or_run(options).programs, choice.pins, choice)
    if options.json:
        print_json(pinned.as_json())
    else:
        show(pinned_text(pinned, full=options.full))


def _mutate(options: argparse.Namespace) -> None:
    from ..explanations.answers.mutated import mutated_text

    sharding_options, options.sharding_option = options.sharding_option, []
    if not sharding_options:
        hint = "give --option, as in --option '%4=[[], [], [], [0]]', as often as you like"
        raise ShardlogError("there is nothing to change", where="mutate", hint=hint)
    if options.keep_shardings is None:
        options.keep_shardings = options.plan is None
    choice = checked_choice(options)
    mutated = _completed(options).mutate(sharding_options, **choice.options)
    if options.json:
        print_json(mutated.as_json())
    else:
        show(mutated_text(mutated, full=options.full))


def _completed(options: argparse.Namespace) -> Session:
    """The saved run, or the module completed."""
    from ..runs.records.saved_file import is_saved

    if not is_saved(Path(options.module)):
        options.propagation = "completion"
    return open_or_run(options)


def _verified(session: Session, explanation: Explanation) -> dict[str, Any]:
    """The findings of ``--verify``. Raises ProofError where a proof is wrong."""
    from ..explanations.questions.replay import replay

    explainer = session.explainer
    checked = explainer.check_proofs(explanation)
    if any(step.kind == "visit" for step in explanation.steps):  # completion takes all annotations at once
        return {"verified": {"proof_steps": checked, "derived_again": False, "also_needed": []}}
    verdict = replay(session.result, explanation)
    also = [explainer.annotation(cell).value for cell in verdict.also]
    return {"verified": {"proof_steps": checked, "derived_again": verdict.holds, "also_needed": also}}


def _verdict_text(verdict: dict[str, Any], explanation: Explanation) -> str:
    verified = verdict["verified"]
    again = "derived again with these annotations alone"
    if any(step.kind == "visit" for step in explanation.steps):
        again = "completion was not run again"
    elif not verified["derived_again"]:
        also = ", ".join(verified["also_needed"]) or "others"
        again = (
            f"not derived with these annotations alone: the order of turns also depends on those of {also}"
        )
    return f"  verified: {verified['proof_steps']} proof steps; {again}"


def _nothing(explainer: Explainer, options: argparse.Namespace) -> str:
    value = explainer.values.find(options.value)[0]
    where = "" if options.dim is None else f" in dim {options.dim}"
    axis = "any axis" if options.axis is None else f'"{options.axis}"'
    hint = "why-not names the reason" if options.axis else "why-not --dim D --axis A names the reason"
    if not value.shape:
        hint = "it is a scalar"
    sentence = f"{value.name} : {value.type} is not sharded on {axis}{where}; {hint}"
    if not value.manual:
        return sentence
    axes = ", ".join(f'"{name}"' for name, _ in value.manual)
    places = " and ".join(dict.fromkeys(place for _, place in value.manual))
    return f"{sentence}\ninside the shard_map at {places} it is one device's part along {axes}"
