"""The arguments and the results of a program, as arrays have them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxlib.mlir import ir

from ..errors import ShardlogError
from ..exporters.lowering.writer import array_type
from ..exporters.tokens import is_token
from ..program.elements import dtype_of
from ..program.mlir.modules import main_function, symbols
from ..program.mlir.places import argument_path, result_path
from .differences import Array
from .rounding import eps_of

if TYPE_CHECKING:
    from ..runs.result import Result

Arrays = list[Array]
_NUMPY = "biufc"  # kinds of its own types, which a file of arrays keeps


@dataclass(frozen=True)
class BoundaryValue:
    """An argument or a result of a program: its name, its type as MLIR writes it, and its shape and type in
    NumPy."""

    name: str
    type: str
    element: str
    shape: tuple[int, ...]

    @property
    def dtype(self) -> Any:
        """The type of its elements."""
        import ml_dtypes  # noqa: F401 - makes them known to NumPy

        return np.dtype(dtype_of(self.element))

    @property
    def kept_as(self) -> Any:
        """The type of elements that a file of arrays has in its place, which has all of its values."""
        if self.dtype.kind in _NUMPY:
            return self.dtype
        return np.dtype(np.float32 if eps_of(self.element) else np.int8)


def boundary(result: Result) -> tuple[list[BoundaryValue], list[BoundaryValue]]:
    """The arguments and the results of a program, without tokens. Raises ShardlogError for types that arrays
    do not have."""
    functions = symbols(result.module, "func.func")
    main = functions[main_function(functions)]
    arguments = [argument_path(a.location) or f"%arg{i}" for i, a in enumerate(main.arguments)]
    results = [result_path(main, i) or f"result#{i}" for i in range(len(main.type.results))]
    ends = []
    for names, types in ((arguments, main.type.inputs), (results, main.type.results)):
        if len(set(names)) < len(names):
            names[:] = [f"{name}#{i}" for i, name in enumerate(names)]
        given = zip(names, types, strict=True)
        ends.append([_value(result, name, type_) for name, type_ in given if not is_token(type_)])
    return ends[0], ends[1]


def _value(result: Result, name: str, given: ir.Type) -> BoundaryValue:
    type_ = array_type(given)
    if isinstance(type_, ir.RankedTensorType):
        element = str(type_.element_type)
        with suppress(TypeError):
            value = BoundaryValue(name, str(type_), element, tuple(type_.shape))
            if dtype_of(element) and value.dtype is not None:
                return value
    hint = "exec runs programs whose arguments and results are arrays"
    raise ShardlogError(f"{name} is a {given}, not an array", where=result.source.name, hint=hint)
