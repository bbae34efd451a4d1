"""The directives ``.input``, ``.output`` and ``.printsize`` of a program, as Soufflé understands them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from ..engine import Diagnostic, Relation
from ..engine.plan.plan import PlanDirective, QueryPlan
from ..errors import ShardlogError, nearest

_READ = ("file", "stdin", "json", "jsonfile", "sqlite")
_WRITTEN = ("file", "stdout", "stdoutprintsize", "json", "jsonfile", "sqlite")
_ENDINGS = {"jsonfile": ".json", "sqlite": ".sqlite"}
_KNOWN = (
    *("IO", "filename", "dbname", "name", "operation", "delimiter", "columns"),
    *("headers", "rfc4180", "compress", "format", "attributeNames", "n"),
)


@dataclass(frozen=True)
class Transfer:
    """A relation to read or write. ``kind`` is the IO of the directive, ``path`` the file, if it is one,
    ``name`` the relation's name outside, ``where`` the directive's place."""

    relation: Relation
    kind: str
    path: Path | None
    name: str
    parameters: Mapping[str, str]
    where: str

    @property
    def rfc4180(self) -> bool:
        """Whether fields may be quoted as in RFC 4180."""
        return self.parameters.get("rfc4180") == "true"

    @property
    def delimiter(self) -> str:
        """The text between two fields."""
        given = self.parameters.get("delimiter", "," if self.rfc4180 else "\t")
        if not given or (self.rfc4180 and '"' in given):
            message = "a delimiter is empty" if not given else 'a delimiter holds `"`, which quotes fields'
            raise ShardlogError(message, where=self.where, hint='as in delimiter=","')
        return given

    @property
    def headers(self) -> bool:
        """Whether the first line of a file has the names of the columns."""
        return self.parameters.get("headers") == "true"


def inputs(plan: QueryPlan, folder: Path) -> list[Transfer]:
    """The inputs of the program; names of files are relative to ``folder``. Raises ShardlogError."""
    directives = [d for d in plan.directives if d.kind == "input"]
    return [_transfer(plan, directive, folder, "file", _READ, ".facts") for directive in directives]


def outputs(plan: QueryPlan, folder: Path | None) -> list[Transfer]:
    """The outputs of the program, in textual order; None: all go to standard output. Raises ShardlogError."""
    transfers = []
    for directive in plan.directives:
        if directive.kind == "printsize":
            transfers.append(_transfer(plan, directive, folder or Path(), "stdoutprintsize", _WRITTEN, ""))
        elif directive.kind == "output":
            ending = ".csv.gz" if "compress" in directive.parameters else ".csv"
            if folder is None:
                parameters = {**directive.parameters, "IO": "stdout", "headers": "true"}
                directive = PlanDirective(**{**vars(directive), "parameters": parameters})
            transfers.append(_transfer(plan, directive, folder or Path(), "file", _WRITTEN, ending))
    return transfers


def unknown_parameters(plan: QueryPlan) -> list[Diagnostic]:
    """A warning for each parameter that nothing looks at."""
    warnings = []
    for directive in plan.directives:
        for name in directive.parameters:
            if name not in _KNOWN:
                near = nearest(name, _KNOWN)
                hint = f"did you mean `{near}`?" if near else ""
                place = (directive.file, directive.line, directive.column)
                warnings.append(Diagnostic(*place, "W0106", f"the parameter `{name}` is not known", hint))
    return warnings


def _transfer(
    plan: QueryPlan, directive: PlanDirective, folder: Path, default: str, kinds: Collection[str], ending: str
) -> Transfer:
    parameters, where = directive.parameters, _place(directive)
    kind = parameters.get("IO", default)
    if kind not in kinds:
        raise ShardlogError(
            f'cannot .{directive.kind} `{directive.relation}` by IO "{kind}"',
            where=where,
            hint=f"there are: {', '.join(kinds)}",
        )
    relation = plan.relations[plan.index(directive.relation)]
    name = parameters.get("name", relation.name)
    path = None
    if kind in ("file", "jsonfile", "sqlite"):
        file = parameters.get("filename") or parameters.get("dbname") or name + _ENDINGS.get(kind, ending)
        # SQLite takes a URI as it stands: it is not about the folder.
        uri = kind == "sqlite" and file.startswith("file:")
        path = Path(unquote(file[5:].partition("?")[0])) if uri else folder / file
    return Transfer(relation, kind, path, name, parameters, where)


def _place(directive: PlanDirective) -> str:
    return f"{directive.file}:{directive.line}:{directive.column}"
