"""``shardlog.jit``: a function that runs with the shardings that shardlog decides for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from typing import Any, Literal, get_args

from .errors import ShardlogError, closest
from .runs.executing.executable import Executable
from .runs.options import NAMES, Options
from .runs.running import run_with

Partitioner = Literal["xla", "shardlog"]
_PARTITION = "keep_shardings", "topology", "memory", "seconds", "collective_matmul"  # of Result.partition


def jit(
    function: Callable[..., Any],
    *,
    in_shardings: Any = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    partitioner: Partitioner = "xla",
    **options: Any,
) -> Callable[..., Any]:
    """As ``jax.jit``, but shardlog decides the shardings, and the program runs with exactly these.

    ``in_shardings`` and what is static or donated are as for ``jax.jit``; ``devices`` are those of the mesh
    unless told otherwise, and ``options`` are those of ``shardlog.run``, such as ``rules``, ``schedule`` and
    ``annotate``. ``partitioner`` says who makes the program that each device runs: XLA ("xla") or
    ``Result.partition`` ("shardlog"), which then takes its options too: ``keep_shardings``, ``topology``,
    ``memory``, ``seconds`` and ``collective_matmul``. The function is traced and compiled once for each kind
    of arguments.

    It can be differentiated (``jax.grad``, ``jax.vjp``): the derivative is decided and compiled in the same
    way, but without ``annotate`` and ``schedule``, which name the function's own values. Inside of another
    ``jax.jit`` it is a part of that program, which XLA partitions as a whole.

    Raises ShardlogError for options that do not exist; the function raises what ``shardlog.run`` does.
    """
    if partitioner not in get_args(Partitioner):
        hint = closest(partitioner, get_args(Partitioner))
        raise ShardlogError(f"there is no partitioner {partitioner!r}", where="jit", hint=hint)
    partition = {name: options.pop(name) for name in _PARTITION if name in options}
    if partition and partitioner != "shardlog":
        hint = "give partitioner='shardlog' too: XLA's partitioner has no such options"
        raise ShardlogError(f"{next(iter(partition))} is for our partitioner", where="jit", hint=hint)
    for name in options:
        if name not in NAMES:
            hint = closest(name, [*NAMES, *_PARTITION])
            raise ShardlogError(f"there is no option {name}", where="jit", hint=hint)
    programs = dict[Any, _Program]()
    setting = _Setting(Options(**options), devices, partitioner, partition)
    numbers, names = _static(function, static_argnums, static_argnames)
    donated = {donate_argnums} if isinstance(donate_argnums, int) else set(donate_argnums)

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        fixed = {i: value for i, value in enumerate(args) if i in numbers}
        named = {name: value for name, value in kwargs.items() if name in names}
        key = len(args), tuple(fixed.items()), tuple(sorted(named.items()))
        if key not in programs:
            free = [i for i in range(len(args)) if i not in fixed]
            donate = tuple(n for n, i in enumerate(free) if i in donated)

            def bound(*rest: Any, **others: Any) -> Any:
                given = fixed | dict(zip(free, rest, strict=True))
                return function(*(given[i] for i in range(len(given))), **others, **named)

            programs[key] = _Program(wraps(function)(bound), setting, in_shardings, donate)
        dynamic = [value for i, value in enumerate(args) if i not in fixed]
        others = {name: value for name, value in kwargs.items() if name not in named}
        return programs[key].differentiable(*dynamic, **others)

    return run


def _static(
    function: Callable[..., Any], numbers: int | Sequence[int], names: str | Sequence[str]
) -> tuple[set[int], set[str]]:
    """The positions and the names of static arguments: each by either, as for ``jax.jit``."""
    positions = {numbers} if isinstance(numbers, int) else set(numbers)
    called = {names} if isinstance(names, str) else set(names)
    parameters = [name for name, p in signature(function).parameters.items() if p.kind <= p.KEYWORD_ONLY]
    positions |= {parameters.index(name) for name in called if name in parameters}
    called |= {parameters[i] for i in positions if i < len(parameters)}
    return positions, called


@dataclass(frozen=True)
class _Setting:
    """How functions are compiled; ``partition`` are options of ``Result.partition``."""

    options: Options
    devices: Sequence[Any] | None
    partitioner: Partitioner
    partition: Mapping[str, Any]

    def compiled(self, lowered: Any) -> Executable:
        """The executable of a lowered function."""
        result = run_with(lowered, self.options)
        if self.partitioner == "xla":
            return result.compile(self.devices)
        return result.partition(**self.partition).compile(self.devices)


class _Program:
    """A function without static arguments, compiled for each kind of arguments."""

    def __init__(
        self,
        function: Callable[..., Any],
        setting: _Setting,
        in_shardings: Any = None,
        donate: tuple[int, ...] = (),
    ) -> None:
        import jax

        shardings = {} if in_shardings is None else {"in_shardings": in_shardings}
        self.function = jax.jit(function, donate_argnums=donate, **shardings)
        self.setting = setting
        self._compiled: dict[Any, tuple[Any, Executable]] = {}
        self._derivatives: dict[Any, tuple[_Program, _Program]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import jax

        traced = self.function.trace(*args, **kwargs)
        leaves = jax.tree.leaves((args, kwargs))
        key = id(traced.jaxpr), tuple(getattr(leaf, "sharding", None) for leaf in leaves)
        if key not in self._compiled:
            self._compiled[key] = (
                traced.jaxpr,
                self.setting.compiled(traced.lower()),
            )  # the jaxpr is kept, or else its number is free
        return self._compiled[key][1](*args, **kwargs)

    def differentiable(self, *args: Any, **kwargs: Any) -> Any:
        """A call that JAX can differentiate."""
        import jax

        tree: Any
        leaves, tree = jax.tree.flatten((args, kwargs))

        def flat(target: Callable[..., Any], values: Sequence[Any]) -> Any:
            given, named = tree.unflatten(values)
            return target(*given, **named)

        @jax.custom_vjp
        def call(*values: Any) -> Any:
            return flat(self.function if _traced(values) else self, values)

        def forward(*values: Any) -> Any:
            if _traced(values):
                return jax.vjp(lambda *v: flat(self.function, v), *values)
            return self._derivative(tree, flat)[0](*values)

        def backward(pullback: Any, cotangent: Any) -> Any:
            if _traced((pullback, cotangent)):
                return pullback(cotangent)
            return self._derivative(tree, flat)[1](pullback, cotangent)

        call.defvjp(forward, backward)
        return call(*leaves)

    def _derivative(self, tree: Any, flat: Callable[..., Any]) -> tuple[_Program, _Program]:
        """The forward pass, which also gives what the derivative needs, and the backward pass."""
        import jax

        if tree not in self._derivatives:
            options = replace(self.setting.options, annotate=(), schedule=())
            setting = replace(self.setting, options=options)

            def forward(*values: Any) -> Any:
                return jax.vjp(lambda *v: flat(self.function, v), *values)

            def backward(pullback: Any, cotangent: Any) -> Any:
                return pullback(cotangent)

            pair = (_Program(f, setting) for f in (forward, backward))
            self._derivatives[tree] = next(pair), next(pair)
        return self._derivatives[tree]


def _traced(values: Any) -> bool:
    import jax

    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))
