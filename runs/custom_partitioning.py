"""What each device computes for a call of a function that JAX's ``custom_partitioning`` wraps: the user's
``partition`` says so. JAX calls it, with what XLA hands to JAX while it partitions."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxlib.mlir import ir

from ..errors import ShardlogError
from ..notations.gspmd.hlo_sharding import HloSharding, parse
from ..notations.gspmd.tiles import from_sharding, to_sharding
from ..partition.computations import Computation
from ..program.elements import dtype_of
from ..program.function import location
from ..program.mlir.modules import operations_in
from ..program.shardings import Sharding
from ..program.signature import text_of
from .jax import main_mesh

if TYPE_CHECKING:
    from .records.record import Value
    from .result import Result


def computations(result: Result) -> dict[Any, Computation]:
    """What each device computes for such calls in the annotated module, by their ops. Those whose functions
    are not there are left out: a module from a file has none. Raises ShardlogError where ``partition`` does
    not say what each device computes."""
    alive = {str(id(each)): each for each in result.source.interface.alive}
    called = calls(result) if alive else ()
    return {
        op: _Call(result, op).computation(alive[key], key)
        for op, key in called
        if key in alive and op in result.items
    }


def calls(result: Result) -> Iterator[tuple[Any, str]]:
    """Such calls in the annotated module, and the names by which JAX knows their functions."""
    lowering = result.book.traits.lowering
    for op in operations_in(result.module):
        attributes = op.attributes
        if "call_target_name" not in attributes:
            continue
        if lowering(f"@{text_of(attributes['call_target_name'])}") == "callback":
            yield op, text_of(attributes["backend_config"]) if "backend_config" in attributes else ""


class _Call:
    """A call in an annotated module."""

    def __init__(self, result: Result, op: Any) -> None:
        self.op, self.shardings, self.written = op, result.program.shardings, result.written
        record, meshes = result.record, self.shardings.meshes.meshes
        numbers = record.op(result.items[op]).values
        self.values = [record.value(number) for number in numbers]
        self.main = meshes.index(main_mesh(meshes))

    def computation(self, info: Any, key: str) -> Computation:
        """What each device computes; ``info`` is what JAX knows of it, under this key."""
        from jaxlib import xla_client

        xla: Any = xla_client

        def listed(values: Any, given: list[Value]) -> tuple[list[Any], list[Any]]:
            shapes, found = [], []
            for value, held in zip(values, given, strict=True):
                dtype = np.dtype(dtype_of(str(value.type.element_type)))
                shapes.append(xla.Shape.array_shape(dtype, tuple(value.type.shape)))
                found.append(xla.HloSharding.from_string(str(self._held(held))))
            return shapes, found

        count = len(self.op.operands)
        shapes, held = listed(self.op.operands, self.values[:count])
        result_shapes, wanted = listed(self.op.results, self.values[count:])
        shape, sharding = result_shapes[0], wanted[0]
        if several := len(result_shapes) != 1:
            shape = xla.Shape.tuple_shape(result_shapes)
            sharding = xla.HloSharding.tuple_sharding(shape, wanted)
        partition = import_module(type(info).__module__)._custom_partitioning_partition
        try:
            module, takes, gives = partition(shapes, held, shape, sharding, key.encode())
        except Exception as error:  # the user's, of any class
            said = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            message = f"partition, as custom_partitioning calls it here, raises {said}"
            hint = "it is given the shardings of operands and results, and says what each device computes"
            raise ShardlogError(message, where=location(self.op), hint=hint) from error
        with self.op.context, ir.Location.unknown():
            taken = self._said(takes, self.values[:count])
            given = self._said(gives.tuple_elements() if several else [gives], self.values[count:])
        manual = dict(self.values[0].manual) if self.values else {}
        axes = [name for name, _ in self.shardings.meshes.meshes[self.main].axes if name not in manual]
        return Computation(module, taken, given, tuple(axes))

    def _held(self, value: Value) -> HloSharding:
        """The sharding of a value, as XLA has it."""
        found = self.written.sharding(value.place, len(value.shape))
        found = found or Sharding.open(self.main, len(value.shape))
        return from_sharding(
            found, self.shardings.meshes.meshes[found.mesh], [axis for axis, _ in value.manual]
        )

    def _said(self, shardings: list[Any], values: list[Value]) -> tuple[Any, ...]:
        """The attributes of shardings that XLA would read."""
        mesh, found = self.shardings.meshes.meshes[self.main], []
        for sharding, value in zip(shardings, values, strict=True):
            said = parse(str(sharding))
            assert isinstance(said, HloSharding)
            made = to_sharding(said, self.main, mesh, len(value.shape))
            found.append(self.shardings.attribute(made, closed=True))
        return tuple(found)
