"""Computing what an op computes: by a reference function, or by compiling the op for the CPU.

XLA computes all of StableHLO (the reference interpreter ends the process on some types). All calls for an op
are compiled as one program without arguments, since compiling takes far longer than running.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, stablehlo

from ..case import Array, Case
from . import worker

Answer = list[Array] | None  # the results of a call; None where the op cannot be called like that


@dataclass(frozen=True, eq=False)
class OpCall:
    """Operands, the shapes of the results, and the attributes that differ from those of the op."""

    operands: Sequence[Array]
    results: Sequence[tuple[int, ...]]
    attributes: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)


class NotExecutableError(Exception):
    """The op cannot be executed, and why."""


def execute(case: Case, calls: Sequence[OpCall]) -> list[Answer]:
    """The results of each call. Raises NotExecutableError where the op cannot be executed at all."""
    if case.reference is not None:
        return [_refer(case, call) for call in calls]
    if case.operation is None or not case.operation.context.is_registered_operation(case.operation.name):
        raise NotExecutableError("there is no reference function")
    if not case.answers["pure"] and not case.answers["pure_inside"]:
        raise NotExecutableError("the op has side effects")
    if not all(isinstance(value.type, ir.RankedTensorType) for value in case.operation.results):
        raise NotExecutableError("its results are not tensors, and XLA returns only tensors")
    return _compile_apart(case.operation, calls)


def _refer(case: Case, call: OpCall) -> Answer:
    assert case.reference is not None
    try:
        answer = case.reference(*call.operands)
    except Exception:
        # Whatever a user's function raises, it does not take these shapes.
        return None
    results = [np.asarray(r) for r in (answer if isinstance(answer, tuple | list) else [answer])]
    return results if [r.shape for r in results] == [tuple(s) for s in call.results] else None


def _compile_apart(op: ir.Operation, calls: Sequence[OpCall]) -> list[Answer]:
    """As `_compile`, but calls that XLA cannot compute have no answer, unless it is the first one."""
    try:
        return _compile(op, calls)
    except NotExecutableError:
        if len(calls) == 1:
            raise
    answers = _compile(op, calls[:1])
    for call in calls[1:]:
        try:
            answers += _compile(op, [call])
        except NotExecutableError:
            answers.append(None)
    return answers


def _compile(op: ir.Operation, calls: Sequence[OpCall]) -> list[Answer]:
    with op.context, ir.Location.unknown():
        module = ir.Module.create()
        cloned: list[list[Any] | None] = []
        with ir.InsertionPoint(module.body):
            function: Any = func.FuncOp("main", ([], []))
            with ir.InsertionPoint(function.add_entry_block()):
                constants: dict[int, Any] = {}
                cloned = [_clone(op, call, constants) for call in calls]
                values = [v for results in cloned if results for v in results]
                func.ReturnOp(values)
        returned = ir.FunctionType.get([], [v.type for v in values])
        function.attributes["function_type"] = ir.TypeAttr.get(returned)
        arrays = iter(_run(str(module)) if values else [])
        return [None if results is None else [next(arrays) for _ in results] for results in cloned]


def _clone(op: ir.Operation, call: OpCall, constants: dict[int, Any]) -> list[Any] | None:
    """The results of a copy of the op; None where it does not verify."""
    for array in call.operands:
        if id(array) not in constants:
            constants[id(array)] = _constant(array)
    copy: Any = op.clone().operation
    for i, array in enumerate(call.operands):
        copy.operands[i] = constants[id(array)]
    for result, shape in zip(copy.results, call.results, strict=True):
        result.set_type(ir.RankedTensorType.get(shape, result.type.element_type))
    for name, value in call.attributes.items():
        if isinstance(value, int):
            copy.attributes[name] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
        else:
            copy.attributes[name] = ir.DenseI64ArrayAttr.get(value)
    for name in [n for n in copy.attributes if n.startswith("sdy.")]:
        del copy.attributes[name]
    try:
        with copy.context.attach_diagnostic_handler(lambda _: True):
            copy.verify()
    except ir.MLIRError:
        copy.erase()
        return None
    return list(copy.results)


def _constant(array: Array) -> Any:
    if array.dtype == np.bool_:
        bits = ir.IntegerType.get_signless(1)  # one by one: as bits a single one is taken for a splat
        values = [ir.IntegerAttr.get(bits, int(v)) for v in array.ravel()]
        attribute = ir.DenseElementsAttr.get(values, ir.RankedTensorType.get(array.shape, bits))
    elif np.issubdtype(array.dtype, np.complexfloating):
        real, imaginary = (np.array(part, order="C") for part in (array.real, array.imag))
        return stablehlo.ComplexOp(_constant(real), _constant(imaginary)).result
    else:
        buffer: Any = array
        attribute = ir.DenseElementsAttr.get(buffer, **_signless(array))
    return stablehlo.ConstantOp(attribute).result


def _signless(array: Array) -> dict[str, Any]:
    """Attributes for an array whose integers are signless in MLIR."""
    if np.issubdtype(array.dtype, np.signedinteger):
        return {"type": ir.IntegerType.get_signless(array.dtype.itemsize * 8), "shape": array.shape}
    return {}


@cache
def _pool() -> ProcessPoolExecutor:
    """One process, for some ops end the one that they run in. It starts anew, as XLA has threads."""
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=worker.prepare)


def _run(program: str) -> list[Array]:
    pool = _pool()
    try:
        answer = pool.submit(worker.compute, program.encode()).result()
    except BaseException as error:  # an interrupt too: nobody waits for the answer then
        pool.shutdown(wait=False, cancel_futures=True)
        _pool.cache_clear()
        if isinstance(error, BrokenProcessPool):
            raise NotExecutableError("computing it ends the process") from None
        raise
    if isinstance(answer, str):
        raise NotExecutableError("XLA does not compute it on the CPU, and there is no reference function")
    return answer
