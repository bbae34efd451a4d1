"""Ops are known by name in the rules alone: Python names what modules are made of, and no other op."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAME = re.compile(r"(stablehlo|sdy|mhlo|chlo|func)\.\w+")

ATTRIBUTES = {
    *("sdy.sharding", "sdy.sharding_rule", "mhlo.sharding", "mhlo.frontend_attributes"),
    *("mhlo.num_partitions", "mhlo.num_replicas", "mhlo.memory_kind"),
    *("stablehlo.mesh", "sdy.original_func_name"),
    *("sdy.propagation_edges", "sdy.block_arg_propagation_edges", "sdy.result_propagation_edges"),
    *("sdy.sharding_origins", "sdy.block_arg_sharding_origins", "sdy.result_sharding_origins"),
    "sdy.sharding_origin_name",
}
STRUCTURE = {
    *("func.func", "func.call", "func.return", "func.result"),  # functions, and the exchange at their end
    *("sdy.mesh", "sdy.manual_computation", "sdy.named_computation"),
    *("sdy.sharding_constraint", "sdy.sharding_group", "sdy.data_flow_edge", "sdy.func_data_flow_edge"),
    "stablehlo.custom_call",  # which says in its target what it is
}
WRITTEN = {  # by the partitioner, which does not ask what an op is called
    f"stablehlo.{name}"
    for name in (
        *("add", "after_all", "and", "broadcast_in_dim", "case", "clamp", "compare", "concatenate"),
        *("constant", "convert", "divide", "multiply", "or", "remainder"),
        *(
            "dynamic_slice",
            "dynamic_update_slice",
            "gather",
            "iota",
            "optimization_barrier",
            "pad",
            "partition_id",
        ),
        *("reduce", "replica_id", "reshape", "return", "select", "slice", "subtract", "transpose"),
    )
} | {"sdy.return"}
ELSEWHERE = {  # ops that are written in another way somewhere
    "checks/agreement.py": {"sdy.reshard"},
    "exporters/bind.py": {"sdy.reshard"},
    "importers/sources/lines.py": {"sdy.constant", "stablehlo.constant", "stablehlo.reshape"},
    "notations/frontend_attributes.py": {
        f"stablehlo.{n}" for n in ("after_all", "infeed", "outfeed", "recv", "send")
    },
    "notations/tuples.py": {"stablehlo.tuple", "stablehlo.get_tuple_element"},
    "notations/xla_loops.py": {"stablehlo.while"},
    # collectives that the partitioner has written
    "partition/finishing/collectives.py": {
        f"stablehlo.{n}"
        for n in ("all_gather", "all_reduce", "all_to_all", "reduce_scatter", "bitcast_convert")
    },
    "partition/finishing/tpus.py": {f"stablehlo.{n}" for n in ("all_gather", "all_to_all", "reduce_scatter")},
}


def modules() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT)
        if relative.parts[0] not in {"tests", "build", "examples", ".venv"}:
            yield relative


@pytest.mark.parametrize("path", [*modules()], ids=str)
def test_python_knows_no_ops(path: Path) -> None:
    tree = ast.parse((ROOT / path).read_text())
    texts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    named = {text for text in texts if NAME.fullmatch(text)}
    named -= WRITTEN if path.parts[0] == "partition" else set()
    unknown = named - ATTRIBUTES - STRUCTURE - ELSEWHERE.get(str(path), set())
    assert not unknown, f"{path} names {', '.join(sorted(unknown))}: say it in rules/ops"


def test_rules_of_propagation_know_no_ops() -> None:
    for file in [*(ROOT / "rules/propagation").glob("*.dl"), *(ROOT / "rules/partition").glob("*.dl")]:
        code = re.sub(r"//.*", "", file.read_text())
        assert not re.findall(rf'"@?{NAME.pattern}"', code), file
