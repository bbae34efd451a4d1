"""The op rules, with the additions of users and packages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..engine import DatalogError, LoadedProgram, QueryPlan, load
from ..errors import ShardlogError
from .discover import GROUP, Package
from .naming import Names, shipped_naming
from .notations.clauses import compile_files
from .notations.einsum import SUFFIXES, read_text, refuse_module
from .notations.priorities import compile_priorities
from .shipped import RULES, plan_cache
from .written import SourceLine, fact_places, read

_OPS = RULES / "ops/main.dl"


@dataclass(frozen=True)
class OpRules:
    """The op rules with those in ``files``, the ops that these are about, and warnings for the user."""

    program: LoadedProgram
    files: tuple[Path, ...]
    about: Names
    messages: list[str]


def load_ops(
    files: Sequence[Path], op_priorities: Path | None = None, include_from: Sequence[Path | str] = ()
) -> LoadedProgram:
    """The op rules with those in ``files``: Datalog, or (``.rules``, ``.txt``) lines of einsum notation;
    and the list of op priorities in a file. ``include_from`` are folders that files may include from,
    besides their own folder and shardlog's rules. Its remarks are those of ``_examined``, if there are
    files."""
    for file in files:
        refuse_module(file)
    lines = [f for f in files if f.suffix in SUFFIXES]
    texts = compile_files({str(f): read_text(f) for f in lines})
    if op_priorities is not None:
        texts[str(op_priorities)] = compile_priorities(str(op_priorities), read_text(op_priorities))
    included = [_OPS, *(f for f in files if f not in lines)]
    folders = (RULES, *include_from)
    return load(
        included,
        key="sig",
        texts=texts,
        include_from=folders,
        untyped=_is_users,
        files=False,
        examine=partial(_examined, files) if files else None,
        cache=plan_cache(),
    )


def _is_users(file: str) -> bool:
    """Whether a file of rules is a user's, who need not know the types of our columns."""
    return not file.startswith(str(RULES))


def _examined(files: Sequence[Path], plan: QueryPlan) -> dict[str, Any]:
    """Remarks on the rules in ``files``, which ``plan`` has: the names of the ops that they are ``about``
    (None: any), and the messages of ``overlaps``. Raises ShardlogError for a rule that adds facts about the
    op itself."""
    from .about import names
    from .overlaps import overlaps

    _check_heads(plan)
    naming = shipped_naming()
    written = read(rule_texts(files))
    about = names(written.module, naming)
    builtin = sorted((RULES / "ops").rglob("*.dl"))
    return {
        "about": None if about is None else sorted(about),
        "overlaps": list(overlaps(written, builtin, naming)),
    }


def _check_heads(plan: QueryPlan) -> None:
    """Raises ShardlogError for a rule that adds facts about the op itself."""
    for rule in plan.rules:
        relation, source = plan.relations[rule.head], plan.sources[rule.source]
        own = not source.file.startswith(str(RULES))
        if own and relation.input and not relation.name.startswith("rule_"):
            message = f"a rule cannot add to {relation.name}, which is shardlog's description of an op"
            hint = "declare a relation of your own with .decl"
            raise ShardlogError(message, where=f"{source.file}:{source.line}", hint=hint)


def rule_texts(files: Iterable[Path]) -> dict[str, str]:
    """The Datalog of rule files, by file. Raises ShardlogError where one cannot be read."""
    texts = {str(file): read_text(file) for file in files}
    return texts | compile_files({f: text for f, text in texts.items() if Path(f).suffix in SUFFIXES})


def load_packages(
    packages: Sequence[Package],
    extra: Sequence[Path],
    op_priorities: Path | None,
    include_from: Sequence[Path | str] = (),
) -> OpRules:
    """The op rules with those of ``packages`` and the files ``extra``. A broken package is left out, with a
    message. Raises for errors in ``extra``."""
    loaded = partial(load_ops, op_priorities=op_priorities, include_from=include_from)
    broken = [(package, package.broken) for package in packages if package.broken]
    whole = [package for package in packages if not package.broken]
    files = (*(file for package in whole for file in package.files), *extra)
    try:
        program = loaded(files)
    except (ShardlogError, DatalogError):
        if not whole:
            raise
        program, files = loaded(extra), tuple(extra)
        for package in whole:
            try:
                program = loaded((*package.files, *files))
                files = (*package.files, *files)
            except (ShardlogError, DatalogError) as error:
                broken.append((package, str(error).splitlines()[0]))
    remarks = program.remarks or {"about": [], "overlaps": []}
    everything = op_priorities is not None or remarks["about"] is None
    messages = [f"the rules of {GROUP}:{p.name} are left out: {why}" for p, why in broken]
    about = None if everything else frozenset(remarks["about"])
    return OpRules(program, files, about, messages + remarks["overlaps"])


def places(files: Iterable[Path]) -> dict[tuple[str, str], SourceLine]:
    """The places of facts about names in rule files."""
    return fact_places({str(file): read_text(file) for file in files})


def as_text(files: Sequence[Path], op_priorities: Path | None) -> str:
    """The op rules with those in ``files`` as one text of Datalog, for other engines: files of Datalog are
    included."""
    lines = [f for f in files if f.suffix in SUFFIXES]
    included = (_OPS, *(f for f in files if f not in lines))
    texts = [f'.include "{f.resolve()}"' for f in included] + list(rule_texts(lines).values())
    if op_priorities is not None:
        texts.append(compile_priorities(str(op_priorities), read_text(op_priorities)))
    return "\n".join([*texts, ""])
