"""Functions that JAX dispatches, traces and lowers like those of ``jax.jit``, with another module to compile.

All uses of JAX's internals are here, and they work with JAX 0.10 to 0.12. A function made here is one of
JAX's own. JAX's compiled code tells arguments apart and passes them on, and no Python runs in a call that is
like an earlier one. Only the steps for a new kind of arguments are ours: JAX traces and lowers the function,
and another module is compiled in place of the one that it lowered.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, update_wrapper
from types import FunctionType, MethodType
from typing import Any, Protocol

import jax
from jax._src import config, core, pjit, source_info_util
from jax._src.interpreters import ad, batching, partial_eval
from jax.extend.core.primitives import jit_p
from jaxlib import _jax

_TRANSFORMING = ad.JVPTrace, ad.LinearizeTrace, batching.BatchTrace, partial_eval.JaxprTrace
source_info_util.register_exclusion(__file__)  # its frames are not the user's
_KINDS = 4096  # of arguments whose programs JAX keeps at once


@dataclass(frozen=True)
class ChosenModule:
    """The ``module`` to compile for ``devices``, in place of the module that JAX lowered.

    ``arguments`` are the shardings of its arguments. If those that JAX was given are equivalent, these
    count.
    """

    module: Any
    devices: tuple[Any, ...]
    arguments: tuple[Any, ...]


Kept = dict[int, tuple[Any, ChosenModule]]  # by the identity of the first, a module of JAX


class ModuleChoice(Protocol):
    """How a function's programs are chosen, and what happens to it under transformations."""

    def choose(self, lowered: object, devices: tuple[Any, ...]) -> ChosenModule:
        """The module to compile for a ``jax.stages.Lowered``, which JAX lowered for these devices."""

    def transform(self, call: TracedCall, args: Sequence[Any]) -> Sequence[Any]:
        """The results of a call while JAX differentiates or batches."""

    def forget(self) -> None:
        """Drops everything that is kept of earlier calls."""


@dataclass(frozen=True)
class TracedCall:
    """A traced function of flat arguments; ``jaxpr`` is its program, the same one for the same kind of
    arguments."""

    jaxpr: Any
    parameters: Mapping[str, Any]

    def __call__(self, *args: object) -> list[Any]:
        bind: Any = jit_p.bind
        return list(bind(*args, **self.parameters))


def dispatched(function: Callable[..., Any], /, *, rules: ModuleChoice, **keywords: Any) -> Any:
    """The function as ``jax.jit`` has it with these keywords, but compiled as the rules choose."""
    if not callable(function):
        return jax.jit(function)  # JAX reports the error
    plain: Any = jax.jit(_twin(function), **keywords)
    chosen: Kept = {}

    def cache_miss(*args: object, **kwargs: object) -> Any:
        trace = core.trace_ctx.trace
        if _transforms_arrays(trace):
            inferred, flat = pjit._infer_params(plain._fun, plain._jit_info, args, kwargs)
            given = rules.transform(TracedCall(inferred.params["jaxpr"], inferred.params), flat)
            return jax.tree.unflatten(inferred.out_tree, given), None, False
        if isinstance(trace, core.EvalTrace):
            _compiled_as_chosen(plain.trace(*args, **kwargs).lower(), rules, chosen)
        return plain._cache_miss(*args, **kwargs)

    kind: Any = type(plain)
    function_of_jax = kind.__new__(kind)
    function_of_jax.__setstate__(
        plain.__getstate__() | {"cache_miss": cache_miss, "cache": _jax.PjitFunctionCache(capacity=_KINDS)}
    )

    class Called(Jitted):
        __call__ = staticmethod(function_of_jax)  # found in the class, so that no Python runs

    Called.__name__ = Called.__qualname__ = Jitted.__name__
    return Called(function, plain, function_of_jax, rules, chosen)


class Jitted:
    """The result of ``jax.jit``, for functions that are compiled as chosen.

    JAX's own class has the same methods; attributes of an object itself are copied to its wrapper.
    """

    def __init__(self, function: Any, plain: Any, jitted: Any, rules: ModuleChoice, chosen: Kept) -> None:
        itself: Any = self  # called by its class
        update_wrapper(itself, function)
        self._plain, self._made, self._rules, self._chosen = plain, jitted, rules, chosen

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """See ``jax.stages.Wrapped.trace``."""
        return _lowered_as_chosen(self._plain.trace(*args, **kwargs), self._rules, self._chosen)

    def lower(self, *args: object, **kwargs: object) -> Any:
        """See ``jax.stages.Wrapped.lower``; it is compiled as calls are."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """See ``jax.eval_shape``."""
        return self._plain.eval_shape(*args, **kwargs)

    def clear_cache(self) -> None:
        """Drops all traces, decisions and compiled programs."""
        self._plain.clear_cache()
        self._made._clear_cache()
        self._chosen.clear()
        self._rules.forget()

    def _cache_size(self) -> int:
        return int(self._made._cache_size())

    def __get__(self: Any, instance: object, owner: object = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<shardlog.jit of {vars(self)['__wrapped__']!r}>"


def unjitted(function: object) -> tuple[Any, dict[str, Any]]:
    """The function that ``jax.jit`` was given, and the options, if it made this one."""
    if not isinstance(function, _jax.PjitFunction):
        return function, {}
    info = function._jit_info
    names = "static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused", "inline"
    options = {name: getattr(info, name) for name in (*names, "device", "backend")}
    options["compiler_options"] = dict(info.compiler_options_kvs) or None
    for name in ("in_shardings", "out_shardings"):
        leaves = getattr(info, f"{name}_leaves")
        if any(type(leaf).__name__ != "UnspecifiedValue" for leaf in leaves):
            options[name] = jax.tree.unflatten(getattr(info, f"{name}_treedef"), leaves)
    return function._fun, options


def _transforms_arrays(trace: core.Trace) -> bool:
    """Whether JAX is differentiating or batching, and is not tracing a program."""
    outer = trace
    while isinstance(outer, _TRANSFORMING):
        outer = outer.parent_trace
    return outer is not trace and isinstance(outer, core.EvalTrace)


def _twin(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, but not for JAX, which keeps traces and lowered modules by function: ``jax.jit`` of
    the given one shares nothing with ours."""
    if not isinstance(function, FunctionType):
        return partial(function)
    name, given = function.__name__, (function.__defaults__, function.__closure__)
    twin = FunctionType(function.__code__, function.__globals__, name, *given)
    twin.__kwdefaults__ = function.__kwdefaults__
    update_wrapper(twin, function)
    if "__wrapped__" in vars(function):
        twin.__wrapped__ = function.__wrapped__  # type: ignore[attr-defined]
    else:
        del twin.__wrapped__  # type: ignore[attr-defined]
    return twin


@contextmanager
def evaluating() -> Iterator[None]:
    """JAX evaluates calls in this context at once, whatever it does around it."""
    with core.eval_context():
        yield


def _lowered_as_chosen(traced: object, rules: ModuleChoice, chosen: Kept) -> Any:
    """A ``jax.stages.Traced`` that is lowered to the chosen module."""

    class Traced(type(traced)):  # type: ignore[misc]
        __slots__ = ()

        def lower(self, *args: object, **kwargs: object) -> Any:
            return _compiled_as_chosen(super().lower(*args, **kwargs), rules, chosen)

    traced.__class__ = Traced
    return traced


def _compiled_as_chosen(lowered: Any, rules: ModuleChoice, chosen: Kept) -> Any:
    """The same ``jax.stages.Lowered``, which is compiled as chosen. JAX keeps its computation for a kind of
    arguments, and compiles the same one for calls."""
    computation = lowered._lowering

    def compile(compiler_options: Any = None, *, device_assignment: Any = None) -> Any:  # noqa: A001
        module = computation._hlo  # one for all shardings that are equivalent
        if id(module) not in chosen:
            devices = tuple(device_assignment or computation._device_list or ())
            chosen[id(module)] = module, rules.choose(lowered, devices)
        other = _in_place_of(computation, chosen[id(module)][1])
        with config.use_shardy_partitioner(True):
            return type(other).compile(other, compiler_options)

    if "compile" not in vars(computation):
        computation.compile = compile
    return lowered


def _in_place_of(computation: Any, choice: ChosenModule) -> Any:
    """A computation of JAX's with the module and the devices that were chosen."""
    other = copy.copy(computation)
    del other.compile
    other._hlo, other._executable = choice.module, None
    arguments = computation.compile_args
    decided = choice.arguments[len(arguments["ordered_effects"]) :]  # tokens come first
    each = zip(arguments["in_shardings"], decided, arguments["global_in_avals"], strict=True)
    given = tuple(_binding(given, ours, aval) for given, ours, aval in each)
    changed: dict[str, Any] = {"in_shardings": given}
    if tuple(computation._device_list or ()) != choice.devices:
        other._device_list = _jax.DeviceList(choice.devices)
        changed |= {"backend": choice.devices[0].client, "num_devices": len(choice.devices)}
        changed |= {"committed": True}
    if not arguments["intermediate_shardings"]:  # by their mesh, JAX names the shardings of results
        changed |= {"intermediate_shardings": decided}
    other.compile_args = arguments | changed
    return other


def _binding(given: Any, decided: Any, aval: Any) -> Any:
    """The sharding of an argument: as given, or as decided where that is another one. JAX asks the executable
    where none was given."""
    if not isinstance(given, jax.sharding.Sharding) or jax.numpy.issubdtype(aval.dtype, jax.dtypes.extended):
        return given
    decided = decided.with_memory_kind(given.memory_kind)
    return given if given.is_equivalent_to(decided, aval.ndim) else decided
