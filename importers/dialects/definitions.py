"""Where values are defined, and the shardings that their definitions have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...program.carried import ENTRIES
from ...program.mlir.modules import boundary_attributes, with_attributes
from ...program.mlir.types import FunctionOp, Operation, Value
from .marks import ANNOTATIONS


class Definitions:
    """The ops that make values, and the results among several that have shardings.

    For many annotations ``ops`` are noted first: MLIR's ``owner`` looks for a dialect each time.
    """

    def __init__(self, ops: Iterable[Operation] = (), *, few: bool = False) -> None:
        self._makers: dict[Any, Any] = {}
        self._few = few
        if not few:
            self.add(ops)
        self._sharded = set[Any]()

    def add(self, makers: Iterable[Operation]) -> None:
        """Notes ops that make values."""
        self._makers |= {value: op for op in makers for value in op.results}

    def maker(self, value: Value) -> Any:
        """The op that makes a value; None for an argument, and for one that was not noted."""
        if self._few and value not in self._makers:
            owner = value.owner
            maker = None if isinstance(owner, ir.Block) else owner.operation
            self._makers[value] = None if maker is not None and maker.name in ANNOTATIONS else maker
        return self._makers.get(value)

    def forget(self, value: Value) -> None:
        """Forgets a value whose op is erased: others may come to stand at its address."""
        self._makers.pop(value, None)
        self._sharded.discard(value)

    def shard(
        self,
        value: Any,
        sharding: ir.Attribute,
        beside: Mapping[str, ir.Attribute],
        of_one: ir.Attribute | None = None,
    ) -> bool:
        """Gives a value a sharding where it is defined; ``of_one`` is the sharding attribute of an op with
        one result. Returns False if its definition cannot have one, or has one already."""
        op = self.maker(value)
        if op is None:
            if not isinstance(value.owner, ir.Block):
                return False
            function: Any = value.owner.owner
            if function.operation.name != "func.func":
                return False
            number = ir.BlockArgument(value).arg_number
            return self.shard_boundary(function, "arg_attrs", number, sharding, beside)
        if op.name.startswith("sdy."):
            return False
        if len(op.results) > 1:
            return self._shard_one(op, value, sharding, beside)
        attributes = op.attributes
        if "sdy.sharding" in attributes:
            return False
        attributes["sdy.sharding"] = of_one or sdy.TensorShardingPerValueAttr.get([sharding])
        for label, attribute in beside.items():
            attributes[label] = attribute
        return True

    def _shard_one(
        self, op: Any, value: Any, sharding: ir.Attribute, beside: Mapping[str, ir.Attribute]
    ) -> bool:
        """Like ``shard``, for one of several results, because attributes beside a sharding would apply to
        all. The others stay open until they are annotated."""
        mesh, number = sdy.TensorShardingAttr(sharding).mesh_or_ref, ir.OpResult(value).result_number
        if "sdy.sharding" in op.attributes:
            shardings = [*sdy.TensorShardingPerValueAttr(op.attributes["sdy.sharding"]).shardings]
        else:
            open_ = sdy.DimensionShardingAttr.get([], is_closed=False)
            ranks = (getattr(result.type, "rank", 0) for result in op.results)
            shardings = [sdy.TensorShardingAttr.get(mesh, [open_] * rank) for rank in ranks]
        one_mesh = all(sdy.TensorShardingAttr(s).mesh_or_ref == mesh for s in shardings)
        if value in self._sharded or not one_mesh or beside.keys() - {ENTRIES}:
            return False
        self._sharded.add(value)
        shardings[number] = sharding
        op.attributes["sdy.sharding"] = sdy.TensorShardingPerValueAttr.get(shardings)
        return True

    def shard_boundary(
        self,
        function: FunctionOp,
        label: str,
        number: int,
        sharding: ir.Attribute,
        beside: Mapping[str, ir.Attribute],
    ) -> bool:
        """Gives an argument or a result of a function a sharding. ``label`` is the attribute that lists them.
        Returns False if it has one already."""
        entries = boundary_attributes(function, label)
        if "sdy.sharding" in entries[number]:
            return False
        entries[number] = with_attributes(entries[number], {"sdy.sharding": sharding, **beside})
        function.attributes[label] = ir.ArrayAttr.get(entries)
        return True
