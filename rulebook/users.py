"""The op rules, with the additions of users and packages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from ..engine import DatalogError, LoadedProgram, load
from ..errors import ShardlogError
from .about import names
from .discover import GROUP, Package
from .naming import Names, Naming
from .notations.clauses import compile_files
from .notations.einsum import SUFFIXES, read_text, refuse_module
from .notations.priorities import compile_priorities
from .overlaps import overlaps
from .shipped import RULES, plan_cache
from .written import SourceLine, fact_places, read

_OPS = RULES / "ops/main.dl"


def load_ops(
    files: Sequence[Path], op_priorities: Path | None = None, include_from: Sequence[Path | str] = ()
) -> LoadedProgram:
    """The op rules with those in ``files``: Datalog, or (``.rules``, ``.txt``) lines of einsum notation;
    and the list of op priorities in a file. ``include_from`` are folders that files may include from,
    besides their own folder and shardlog's rules."""
    for file in files:
        refuse_module(file)
    lines = [f for f in files if f.suffix in SUFFIXES]
    texts = compile_files({str(f): read_text(f) for f in lines})
    if op_priorities is not None:
        texts[str(op_priorities)] = compile_priorities(str(op_priorities), read_text(op_priorities))
    included = [_OPS, *(f for f in files if f not in lines)]
    folders = (RULES, *include_from)
    program = load(
        included,
        key="sig",
        texts=texts,
        include_from=folders,
        untyped=_is_users,
        files=False,
        cache=plan_cache(),
    )
    _check_heads(program)
    return program


def _is_users(file: str) -> bool:
    """Whether a file of rules is a user's, who need not know the types of our columns."""
    return not file.startswith(str(RULES))


def _check_heads(program: LoadedProgram) -> None:
    """Raises ShardlogError for a rule that adds facts about the op itself."""
    plan = program.plan
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
) -> tuple[LoadedProgram, tuple[Path, ...], list[str]]:
    """The op rules with those of ``packages`` and the files ``extra``. Also the files in use, and a message
    for every broken package, which is left out. Raises for errors in ``extra``."""
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
    return program, files, [f"the rules of {GROUP}:{p.name} are left out: {why}" for p, why in broken]


def names_in(files: Sequence[Path], naming: Naming) -> tuple[Names, list[str]]:
    """The ops that rule files are about, and a message for each op that several of them, or one of them and
    shardlog's own, have a rule for."""
    if not files:
        return frozenset(), []
    written = read(rule_texts(files))
    builtin = sorted((RULES / "ops").rglob("*.dl"))
    return names(written.module, naming), list(overlaps(written, builtin, naming))


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
