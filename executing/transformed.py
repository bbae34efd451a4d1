"""Decided functions under JAX's transformations: derivatives and batches are decided anew.

One primitive stands for a call of a decided function while JAX transforms it. Its rules make the functions
that the transformation needs, each a decided one too: the forward pass with its residuals, the derivative,
its transpose, the batched function.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from .dispatch import evaluating

Flat = Callable[..., Any]  # a function of arrays; its results are a list unless told otherwise
Make = Callable[[Flat], Any]  # a decided function of it


class TracedFunction:
    """A function of arrays, and the functions derived from it. JAX traces each once."""

    def __init__(self, function: Flat, make: Make) -> None:
        self.function, self.make = function, make
        self.run = make(function)
        self._derived: dict[Hashable, TracedFunction] = {}

    def derived(self, key: Hashable, function: Callable[[], Flat]) -> TracedFunction:
        """The program of a function that follows from this one by ``key``."""
        if key not in self._derived:
            self._derived[key] = TracedFunction(function(), self.make)
        return self._derived[key]


call_p: Any = Primitive("shardlog_jit")
call_p.multiple_results = True


def _computed(*args: Any, program: TracedFunction) -> Any:
    with evaluating():
        return program.run(*args)


def _abstract(*args: Any, program: TracedFunction) -> Any:
    jaxpr = program.run.trace(*args).jaxpr
    return jaxpr.out_avals, jaxpr.effects


def _pushed(primals: Sequence[Any], tangents: Sequence[Any], *, program: TracedFunction) -> Any:
    """The results, and how they move with the arguments. Where JAX does not know the movements yet, as in
    reverse mode, the two are programs of their own."""
    moving = tuple(not _still(tangent) for tangent in tangents)
    moves = [tangent for tangent, moves in zip(tangents, moving, strict=True) if moves]
    if any(isinstance(move, jax.core.Tracer) for move in moves):
        forward = program.derived(("forward", moving), lambda: _forward(program, moving))
        results, linear = forward.run(*primals)
        needed, tree = jax.tree.flatten(linear)
        derivative = program.derived(("derivative", tree), lambda: _derivative(tree))
        moved = call_p.bind(*needed, *moves, program=derivative)
    else:
        both = program.derived(("both", moving), lambda: _both(program, moving))
        results, moved = both.run(*primals, *moves)
    rest = iter(moved)
    return results, [next(rest) if _moves(x) else _zero(x) for x in results]


def _forward(program: TracedFunction, moving: Sequence[bool]) -> Flat:
    def forward(*primals: Any) -> Any:
        return jax.linearize(_of_moving(program, primals, moving), *_only(primals, moving))

    return forward


def _derivative(tree: Any) -> Flat:
    def derivative(*args: Any) -> list[Any]:
        needed, moves = args[: tree.num_leaves], args[tree.num_leaves :]
        return [x for x in jax.tree.unflatten(tree, needed)(*moves) if not _still(x)]

    return derivative


def _both(program: TracedFunction, moving: Sequence[bool]) -> Flat:
    def both(*args: Any) -> Any:
        primals, moves = args[: len(moving)], args[len(moving) :]
        results, moved = jax.jvp(_of_moving(program, primals, moving), _only(primals, moving), moves)
        return results, [x for x in moved if not _still(x)]

    return both


def _pulled(cotangents: Sequence[Any], *args: Any, program: TracedFunction) -> list[Any]:
    """The transpose of a function that is linear in its unknown arguments."""
    linear = tuple(isinstance(x, ad.UndefinedPrimal) for x in args)
    kinds = tuple(x.aval for x in _only(args, linear))
    known_args = _only(args, (not x for x in linear))
    given = tuple(not _still(x) for x in cotangents)

    def transpose() -> Flat:
        def transposed(*flat: Any) -> Any:
            values, pulled = flat[: len(known_args)], flat[len(known_args) :]

            def function(*moves: Any) -> Any:
                each = iter(values), iter(moves)
                return _only(program.function(*(next(each[x]) for x in linear)), given)

            return jax.linear_transpose(function, *kinds)(pulled)

        return transposed

    cotangents_out = iter(
        program.derived(("transpose", linear, kinds, given), transpose).run(
            *known_args, *_only(cotangents, given)
        )
    )
    return [next(cotangents_out) if x else None for x in linear]


def _batched(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, program: TracedFunction) -> Any:
    """The function of many arguments at once; they come first in all results."""
    if all(dim is None for dim in dims):
        results = program.run(*args)
        return results, [None] * len(results)
    keywords = {
        "in_axes": tuple(dims),
        "axis_size": axis.size,
        "axis_name": axis.name,
        "spmd_axis_name": axis.spmd_name,
    }
    key = ("batch", *keywords.values())
    results = program.derived(key, lambda: jax.vmap(program.function, **keywords)).run(*args)
    return results, [0] * len(results)


def _of_moving(program: TracedFunction, primals: Sequence[Any], moving: Sequence[bool]) -> Flat:
    """The function of those arguments that move."""

    def function(*values: Any) -> Any:
        rest = iter(values)
        return program.function(*(next(rest) if x else p for p, x in zip(primals, moving, strict=True)))

    return function


def _only(values: Iterable[Any], which: Iterable[bool]) -> tuple[Any, ...]:
    return tuple(value for value, wanted in zip(values, which, strict=True) if wanted)


def _still(tangent: Any) -> bool:
    """Whether a tangent is known to be zero, as for integers."""
    return isinstance(tangent, ad.Zero) or tangent.dtype == jax.dtypes.float0


def _zero(primal: Any) -> Any:
    return ad.Zero(jax.typeof(primal).to_tangent_aval())


def _moves(primal: Any) -> bool:
    return bool(jax.numpy.issubdtype(jax.typeof(primal).dtype, jax.numpy.inexact))


call_p.def_impl(_computed)
call_p.def_effectful_abstract_eval(_abstract)
ad.primitive_jvps[call_p] = _pushed
ad.primitive_transposes[call_p] = _pulled
batching.fancy_primitive_batchers[call_p] = _batched
mlir.register_lowering(
    call_p, mlir.lower_fun(lambda *args, program: program.run(*args), multiple_results=True)
)
