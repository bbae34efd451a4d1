"""The computation of each device for a call of a function that JAX's ``custom_partitioning`` wraps, by the
user's ``partition``. JAX calls it, with the data that XLA passes to JAX while it partitions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxlib.mlir import ir

from ..errors import ShardlogError
from ..notations.gspmd.hlo_sharding import HloSharding, parse
from ..notations.gspmd.tiles import from_sharding, to_sharding
from ..partition.preparing.computations import Computation
from ..program.elements import dtype_of
from ..program.function import location
from ..program.mlir.modules import operations_in
from ..program.shardings import Sharding
from ..program.signature import text_of
from .jax import main_mesh

if TYPE_CHECKING:
    from .records.record import TensorValue
    from .result import Result


def computations(result: Result) -> dict[Any, Computation]:
    """The computations of each device for such calls in the annotated module, by op. Those whose functions
    are not there are left out: a module from a file has none. Raises ShardlogError if ``partition`` does
    not return a computation."""
    alive = {str(id(each)): each for each in result.source.interface.alive}
    called = calls(result) if alive else ()
    return {
        op: _Call(result, op, alive[key], key).computation()
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


def hlo_sharding(result: Result, value: TensorValue, sharding: Sharding | None = None) -> Any:
    """The sharding that propagation decided for a value, or the given one, as jaxlib's ``HloSharding``."""
    from jaxlib import xla_client

    meshes, rank = result.program.shardings.meshes.meshes, len(value.shape)
    decided = sharding or result.written.sharding(value.place, rank)
    decided = decided or Sharding.open(meshes.index(main_mesh(meshes)), rank)
    hlo = from_sharding(decided, meshes[decided.mesh], [axis for axis, _ in value.manual])
    read: Any = xla_client.HloSharding.from_string
    return read(str(hlo))


class _Call:
    """A call in an annotated module; ``info`` is JAX's record of it, under a ``key``."""

    def __init__(self, result: Result, op: Any, info: Any, key: str) -> None:
        from jaxlib import xla_client

        self.xla: Any = xla_client
        self.op, self.info, self.key = op, info, key.encode()
        self.result, self.shardings = result, result.program.shardings
        self.meshes = self.shardings.meshes.meshes
        self.main = self.meshes.index(main_mesh(self.meshes))
        values = [result.record.value(number) for number in result.record.op(result.items[op]).values]
        self.operands, self.results = values[: len(op.operands)], values[len(op.operands) :]

    def computation(self) -> Computation:
        """The computation of each device."""
        shapes = list(map(self._shape, self.op.operands))
        held = [hlo_sharding(self.result, value) for value in self.operands]
        module, takes, gives = self._ask("partition", shapes, held, *self._wanted(shapes, held))
        given = [gives] if len(self.results) == 1 else gives.tuple_elements()
        with self.op.context, ir.Location.unknown():
            taken, given = self._attributes(takes, self.operands), self._attributes(given, self.results)
        manual = dict(self.operands[0].manual) if self.operands else {}
        axes = [name for name, _ in self.meshes[self.main].axes if name not in manual]
        return Computation(module, taken, given, tuple(axes))

    def _wanted(self, shapes: list[Any], held: list[Any]) -> tuple[Any, Any]:
        """The shape of the call's result, and the sharding in which it is needed. Without a rule for
        propagation, the user's functions derive it from the shardings of operands and users."""
        shape = list(map(self._shape, self.op.results))
        wanted = [hlo_sharding(self.result, value) for value in self.results]
        one = len(shape) == 1
        whole = shape[0] if one else self.xla.Shape.tuple_shape(shape)
        sharding = wanted[0] if one else self.xla.HloSharding.tuple_sharding(whole, wanted)
        decided = not all(map(self.xla.HloSharding.is_replicated, wanted))
        if decided and self.info.propagate_user_sharding is not None:
            sharding = self._ask("propagate_user_sharding", sharding, whole)
        elif not decided and self.info.infer_sharding_from_operands is not None:
            sharding = self._ask("infer_sharding_from_operands", shapes, held, whole)
        return whole, sharding

    def _ask(self, which: str, *given: Any) -> Any:
        """The result of one of the user's functions, called as JAX calls it for XLA."""
        function = getattr(sys.modules[type(self.info).__module__], f"_custom_partitioning_{which}")
        try:
            return function(*given, self.key)
        except Exception as error:  # the user's, of any class
            raised = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            message = f"{which}, as custom_partitioning calls it here, raises {raised}"
            hint = "it is given the shardings of operands and results, as propagation decided them"
            raise ShardlogError(message, where=location(self.op), hint=hint) from error

    def _shape(self, value: Any) -> Any:
        """The type of a value, as XLA has it."""
        dtype = np.dtype(dtype_of(str(value.type.element_type)))
        return self.xla.Shape.array_shape(dtype, tuple(value.type.shape))

    def _attributes(self, shardings: list[Any], values: list[TensorValue]) -> tuple[Any, ...]:
        """The attributes of shardings that XLA would read."""
        attributes = []
        for sharding, value in zip(shardings, values, strict=True):
            parsed = parse(str(sharding))
            assert isinstance(parsed, HloSharding)
            try:
                decided = to_sharding(parsed, self.main, self.meshes[self.main], len(value.shape))
            except ShardlogError as error:
                hint = "give shardings on the mesh that partition is given"
                raise ShardlogError(error.message, where=location(self.op), hint=hint) from None
            attributes.append(self.shardings.attribute(decided, closed=True))
        return tuple(attributes)
