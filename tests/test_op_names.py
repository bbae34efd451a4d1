"""Ops are known by name in the rules alone: Python names what modules are made of, and no other op.

The partitioner writes ops, so it names those that it passes to what writes them. All other names
are known, such as those that are compared: they are in one of the tables here, which say why.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DIALECT = r"(?:stablehlo|sdy|mhlo|chlo|func)\."
NAME = re.compile(DIALECT + r"\w*")  # or what such a name begins with

ATTRIBUTES = {
    *("sdy.sharding", "sdy.sharding_rule", "mhlo.sharding", "mhlo.frontend_attributes"),
    *("mhlo.num_partitions", "mhlo.num_replicas", "mhlo.memory_kind"),
    *("stablehlo.mesh", "sdy.original_func_name", "sdy.func_manual_axes", "mhlo.memory_kind"),
    *("sdy.propagation_edges", "sdy.block_arg_propagation_edges", "sdy.result_propagation_edges"),
    *("sdy.sharding_origins", "sdy.block_arg_sharding_origins", "sdy.result_sharding_origins"),
    "sdy.sharding_origin_name",
}
STRUCTURE = {
    *("func.func", "func.call", "func.return", "func.result"),  # functions, and the exchange at their end
    *("sdy.mesh", "sdy.manual_computation", "sdy.named_computation"),
    *("sdy.sharding_constraint", "sdy.sharding_group", "sdy.data_flow_edge", "sdy.func_data_flow_edge"),
    "sdy.",  # what only says how values are sharded
    "stablehlo.custom_call",  # which says in its target what it is
}
WRITERS = {
    "binary",
    "collective",
    "create",
    "one",
    "op",
    "where",
    "_op",
}  # what writes ops in the partitioner
# What writes ops: a name that is only passed to a writer is not known.
WRITE = (
    "partition/",
    "exporters/dialects/",
    "exporters/lowering/",
    "importers/dialects/control.py",
    "importers/dialects/local.py",
    "importers/dialects/messages.py",
)
KNOWN = {  # ops that are known somewhere
    "runs/agreement.py": {"sdy.reshard"},
    "cost/account.py": {"func."},
    "exporters/bind.py": {"sdy.reshard"},
    "exporters/dialects/annotations.py": {"sdy.reshard"},
    # what the partitioner has written, and what programs of other dialects are written in
    "exporters/dialects/local.py": {
        "stablehlo.",
        *(f"stablehlo.{n}" for n in ("convert", "reshape", "dynamic_slice", "partition_id", "replica_id")),
        "stablehlo.constant",
    },
    "exporters/dialects/places.py": {
        *(f"stablehlo.{n}" for n in ("add", "subtract", "multiply", "divide", "remainder", "constant")),
        *(f"stablehlo.{n}" for n in ("convert", "reshape", "dynamic_slice", "partition_id", "replica_id")),
    },
    "exporters/lowering/loops.py": {"stablehlo.add"},
    "exporters/lowering/lowering.py": {"stablehlo."},
    "exporters/lowering/moves.py": {f"stablehlo.{n}" for n in ("add", "maximum", "minimum")},
    "importers/dialects/normal.py": {"mhlo."},
    "exporters/reshards.py": {"sdy.reshard", "sdy.propagation_barrier"},
    "importers/sources/lines.py": {"sdy.constant", "stablehlo.constant", "stablehlo.reshape"},
    "notations/frontend_attributes.py": {
        f"stablehlo.{n}" for n in ("after_all", "infeed", "outfeed", "recv", "send")
    },
    "notations/tuples.py": {"stablehlo.tuple", "stablehlo.get_tuple_element"},
    "notations/xla_loops.py": {"stablehlo.while"},
    # what the partitioner has written, or what it will write
    "partition/writing/building.py": {"stablehlo.dynamic_slice", "stablehlo.partition_id"},
    "partition/choice/choosing.py": {"stablehlo.add"},
    "partition/facts/knowledge.py": {"stablehlo."},
    "program/reductions.py": {
        f"stablehlo.{n}" for n in ("add", "maximum", "minimum", "multiply", "and", "or", "xor")
    },
    "partition/finishing/collectives.py": {
        "stablehlo.",
        *(f"stablehlo.{n}" for n in ("all_gather", "all_reduce", "all_to_all", "reduce_scatter")),
    },
    "partition/finishing/combining/combining.py": {"stablehlo."},
    "partition/finishing/indices.py": {"stablehlo.", "stablehlo.constant"},
    "partition/finishing/tpus.py": {f"stablehlo.{n}" for n in ("all_gather", "reduce_scatter")},
    "partition/finishing/unsupported.py": {
        f"stablehlo.{n}" for n in ("all_reduce", "reduce_scatter", "and", "or", "xor")
    },
}


def modules() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT)
        if relative.parts[0] not in {"tests", "build", "examples", ".venv", ".venvs"}:
            yield relative


class Names(ast.NodeVisitor):
    """The names of ops in a module that are not merely passed to what writes ops: ``known``."""

    def __init__(self, tree: ast.Module) -> None:
        self.known: set[str] = set()
        self._writing = False
        self._local: dict[str, list[str]] = {}  # variables, and the names that they may hold
        self._loaded: dict[str, list[bool]] = {}  # whether each use of a variable writes
        self._visit_scope(tree)

    def _visit_scope(self, node: ast.AST) -> dict[str, list[bool]]:
        """Visits a module or function; returns the uses of variables that are not its own."""
        outer, self._local, self._loaded = (self._local, self._loaded), {}, {}
        self.generic_visit(node)
        for variable, names in self._local.items():
            uses = self._loaded.pop(variable, [])
            if not (uses and all(uses)):
                self.known.update(names)
        left, (self._local, self._loaded) = self._loaded, outer
        return left

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for variable, uses in self._visit_scope(node).items():
            self._loaded.setdefault(variable, []).extend(uses)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called == "partial" and node.args:
            called = getattr(node.args[0], "attr", "")
        self.visit(node.func)
        for each in (*node.args, *(keyword.value for keyword in node.keywords)):
            self._visit(each, writing=called in WRITERS)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {text for each in ast.walk(node.value) for text in _texts(each)}
        (target,) = node.targets if len(node.targets) == 1 else (None,)
        if isinstance(target, ast.Name) and names and isinstance(node.value, ast.Constant | ast.IfExp):
            self._local.setdefault(target.id, []).extend(names)
        else:
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for each in (node.left, *node.comparators):
            self._visit(each, writing=False)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._visit(node.value, writing=False)
        self._visit(node.slice, writing=False)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._visit(node.test, writing=False)
        self.visit(node.body)
        self.visit(node.orelse)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._loaded.setdefault(node.id, []).append(self._writing)

    def visit_Constant(self, node: ast.Constant) -> None:
        if not self._writing:
            self.known.update(_texts(node))

    def _visit(self, node: ast.AST, *, writing: bool) -> None:
        before, self._writing = self._writing, writing
        self.visit(node)
        self._writing = before


def _texts(node: ast.AST) -> Iterator[str]:
    """The name of an op that a constant is, alone or as the beginning of a formatted text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
        yield node.value


@pytest.mark.parametrize("path", [*modules()], ids=str)
def test_python_knows_no_ops(path: Path) -> None:
    tree = ast.parse((ROOT / path).read_text())
    if str(path).startswith(WRITE):
        named = Names(tree).known
    else:
        named = {text for node in ast.walk(tree) for text in _texts(node)}
    known = KNOWN.get(str(path), set())
    unknown = named - ATTRIBUTES - STRUCTURE - known
    assert not unknown, f"{path} knows {', '.join(sorted(unknown))}: say it in rules/ops"
    assert known <= named, f"{path} knows no {', '.join(sorted(known - named))} any more"


@pytest.mark.parametrize(
    ("code", "known"),
    [
        ('builder.one("stablehlo.add", [a, b])', set()),
        ('builder.one("stablehlo.or" if boolean else "stablehlo.and", [a])', set()),
        ('name = "stablehlo.iota"\nbuilder.op(name, [])', set()),
        ('builder.op(f"stablehlo.{kind}", [])', set()),
        ('op.name == "stablehlo.add"', {"stablehlo.add"}),
        ('op.name in ("stablehlo.add", "chlo.erf")', {"stablehlo.add", "chlo.erf"}),
        ('builder.one("stablehlo.or" if op.name == "stablehlo.and" else name, [a])', {"stablehlo.and"}),
        ('table = {"stablehlo.add": 1}', {"stablehlo.add"}),
        ('names.get("stablehlo.add")', {"stablehlo.add"}),
        ('name = "stablehlo.iota"\nbuilder.op(name, [])\nop.name == name', {"stablehlo.iota"}),
        ('NAMES = frozenset(f"stablehlo.{n}" for n in names)', {"stablehlo."}),
        ('op.name.startswith("stablehlo.")', {"stablehlo."}),
        ('match op.name:\n    case "stablehlo.iota":\n        pass', {"stablehlo.iota"}),
    ],
)
def test_names_that_are_compared_are_known(code: str, known: set[str]) -> None:
    assert Names(ast.parse(code)).known == known


@pytest.mark.parametrize(
    "path",
    [
        path.relative_to(ROOT)
        for folder in ("propagation", "partition", "cost")
        for path in sorted((ROOT / "rules" / folder).rglob("*.dl"))
    ],
    ids=str,
)
def test_rules_of_propagation_partition_and_cost_know_no_ops(path: Path) -> None:
    code = re.sub(r"//.*", "", (ROOT / path).read_text())
    named = {text.strip('"@') for text in re.findall(rf'"@?{DIALECT}\w+"', code)}
    assert not named - ATTRIBUTES
