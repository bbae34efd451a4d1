"""``shardlog auto``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..autosharding.options import METHODS
from ..console.colours import show
from ..console.printing import print_json
from ..runs.options import TOPOLOGY, memory_of
from .running import MODULE, Progress, add_json, reads

if TYPE_CHECKING:
    from ..autosharding.options import AutoOptions
    from ..autosharding.plan import AutoPlan
    from ..console.parser import Commands


def add(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Adds the commands."""
    _add_auto(commands)
    _add_why(commands)
    _add_diff(commands)


def _add_auto(commands: Commands) -> None:
    auto = commands.add_parser("auto", help="find shardings for arguments and results, by cost on a machine")
    auto.add_argument("module", metavar="MODULE", help=MODULE)
    about = "the mesh, as in data=4,model=2; default: the module's"
    auto.add_argument("--mesh", metavar="AXES", help=about)
    about = "in place of a mesh: search the best mesh of this many devices"
    auto.add_argument("--devices", type=int, metavar="N", help=about)
    about = "with --devices: the most axes that a mesh may have, 1 to 3; default: 2"
    auto.add_argument("--axes", type=int, metavar="N", help=about)
    about = f"the machine, by name or as a TOML file; default: the machine of --plan, or {TOPOLOGY}"
    auto.add_argument("--topology", metavar="MACHINE", help=about)
    about = "the most memory that a device may use, as in 16GiB"
    auto.add_argument("--memory", metavar="SIZE", type=reads(memory_of), help=about)
    about = (
        "keep the sharding of an argument, or of all below a name: the axes of each dimension from the "
        "first, as in batch[0]=data or params=-,model or w=P('data'); may be repeated"
    )
    auto.add_argument("--keep", metavar="NAME=AXES", action="append", default=[], help=about)
    about = (
        "the results that are arguments of the next step, and have their shardings: auto (donated, or with "
        "equal names or types), none, or as in params=result[0]; may be repeated; default: auto"
    )
    auto.add_argument("--tie", metavar="ARGUMENT=RESULT", action="append", default=[], help=about)
    about = (
        "cost known strategies as well: data parallel, ZeRO-1 and 3, Megatron, sequence and expert parallel"
    )
    compare = argparse.BooleanOptionalAction
    auto.add_argument("--compare", action=compare, default=True, help=f"{about}; default: compare")
    about = "mutate: try other layouts for the arguments of the best plan as well, one by one"
    auto.add_argument("--method", choices=METHODS, default=METHODS[0], help=f"{about}; default: %(default)s")
    about = "apply this plan, of the same model in another size, and search nothing"
    auto.add_argument("--plan", metavar="PLAN.json", help=about)
    auto.add_argument("-o", "--output", metavar="PLAN.json", help="write the plan")
    about = "write the program that each device runs; .mlirbc is bytecode"
    auto.add_argument("--program", metavar="OUT", help=about)
    about = "draw the time against the memory of all plans that were costed, and of plans with less memory"
    auto.add_argument("--plot", metavar="PLOT.svg", help=about)
    about = (
        "write an HTML page about the program of the plan, with this plot and the plans that were compared"
    )
    auto.add_argument("--report", metavar="REPORT.html", help=about)
    add_json(auto, "print the plan as JSON")
    auto.set_defaults(carry_out=_auto)


def _add_why(commands: Commands) -> None:
    why = commands.add_parser(
        "why-plan", help="list the next best layouts of an argument of a plan, and why they lost"
    )
    why.add_argument("argument", metavar="ARGUMENT", help="an argument, by name or as in %%arg3")
    why.add_argument("plan", metavar="PLAN.json", help="a plan that shardlog auto wrote")
    about = (
        "the module of the plan: cost a program for each other layout of the argument, and of similar ones"
    )
    why.add_argument("--module", metavar="MODULE", help=about)
    why.set_defaults(carry_out=_why)


def _add_diff(commands: Commands) -> None:
    diff = commands.add_parser("diff-plan", help="compare two plans of a model")
    diff.add_argument("plan", metavar="PLAN.json", help="a plan that shardlog auto wrote")
    diff.add_argument("changed", metavar="OTHER.json", help="another plan, also of another size of the model")
    add_json(diff, "print the comparison as JSON")
    diff.set_defaults(carry_out=_diff)


def _diff(options: argparse.Namespace) -> int:
    """Returns 1 if the plans differ in a spec."""
    from ..autosharding.comparing import compared
    from ..autosharding.plan import AutoPlan
    from ..autosharding.texts import diff_text

    difference = compared(AutoPlan.read(options.plan), AutoPlan.read(options.changed))
    if options.json:
        print_json(difference.as_json())
    else:
        show(diff_text(difference))
    return int(bool(difference.changed))


def _why(options: argparse.Namespace) -> None:
    from ..autosharding.plan import AutoPlan
    from ..autosharding.texts import weighed_text, why_text
    from ..autosharding.weighing import weighed

    plan = AutoPlan.read(options.plan)
    if options.module is None:
        show(why_text(plan, options.argument))
        return
    with Progress() as progress:
        others = weighed(_source(options.module), plan, options.argument, progress)
    show(weighed_text(plan, options.argument, others))


def _auto(options: argparse.Namespace) -> None:
    from ..autosharding.applying import applied
    from ..autosharding.automatic import costed_known, plan
    from ..autosharding.options import AutoOptions
    from ..autosharding.plan import AutoPlan
    from ..autosharding.texts import plan_text
    from ..errors import ShardlogError
    from ..outputs import output, refuse_loss

    written = [
        *(("-o", options.output), ("--program", options.program)),
        *(("--plot", options.plot), ("--report", options.report)),
    ]
    if Path(options.plot or "").suffix not in ("", ".svg"):
        hint = "the plot is an SVG picture: expected a name that ends with .svg"
        raise ShardlogError("this is not the name of an SVG file", where=f"--plot {options.plot}", hint=hint)
    module = None if options.module == "-" else options.module
    refuse_loss(written, [module, options.plan, options.topology])
    given = None if options.plan is None else AutoPlan.read(options.plan)
    auto_options = AutoOptions.of(
        mesh=options.mesh,
        devices=options.devices,
        axes=options.axes,
        topology=options.topology or (given and given.topology),
        memory=options.memory,
        keep=options.keep,
        tie=options.tie or None,
        compare=options.compare,
        method=options.method,
    )
    source = _source(options.module)
    with ExitStack() as stack:
        files = [stack.enter_context(output(name)) if name else None for _, name in written]
        with Progress() as progress:
            plan_found = (
                plan(source, auto_options, progress)
                if given is None
                else applied(source, given, auto_options, progress)
            )
            if options.plot or options.report:
                plan_found = costed_known(source, plan_found, auto_options, progress)
        if files[0] is not None:
            files[0].write_text(plan_found.text)
        if files[1] is not None:
            from ..autosharding.automatic import program

            planned = program(source, plan_found)
            bytecode = Path(options.program).suffix == ".mlirbc"
            files[1].write_bytes(planned.bytecode() if bytecode else planned.text().encode())
        if files[2] is not None or files[3] is not None:
            with Progress() as progress:
                _draw(source, auto_options, plan_found, files[2:], progress)
    if options.json:
        print_json(plan_found.as_json())
    else:
        show(plan_text(plan_found))


def _source(module: str) -> Any:
    """The module. It is read several times, so standard input is kept."""
    if module != "-":
        return Path(module)
    from ..importers.sources.source import read_program

    return read_program(module)[0]


def _draw(
    source: Any, auto_options: AutoOptions, plan: AutoPlan, files: Sequence[Path | None], progress: Progress
) -> None:
    """Writes the plot, and the report, where they are asked for."""
    from ..autosharding.automatic import pareto, session_of
    from ..autosharding.pictures import plan_picture
    from ..autosharding.texts import shown
    from ..runs.choice import ProgramChoice

    others = pareto(source, auto_options.on(plan.mesh), progress)
    picture = plan_picture(plan, others)
    plot, report = files
    if plot is not None:
        plot.write_text(picture, encoding="utf-8")
    if report is not None:
        choice = ProgramChoice(topology=plan.topology, memory=plan.memory)
        session = session_of(source, plan)
        report.write_text(session.report_html(progress, choice, shown(plan, picture)), encoding="utf-8")
