"""``shardlog.jit``: ``jax.jit`` with the shardings that shardlog decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from .errors import ShardlogError, check_options, closest, from_extra
from .runs.options import NAMES, Options
from .runs.running import run_with
from .session import Session

if TYPE_CHECKING:
    from .executing.dispatch import ChosenModule, TracedCall
    from .executing.transformed import TracedFunction

Partitioner = Literal["xla", "shardlog"]
_PARTITION = "keep_shardings", "topology", "memory", "seconds", "collective_matmul"  # of Session.partition


class _Unspecified:
    """A placeholder for JAX's own mark of shardings that are left to propagation."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


_UNSPECIFIED: Any = _Unspecified()


def jit(
    fun: Callable[..., Any] = _UNSPECIFIED,
    /,
    *,
    in_shardings: object = _UNSPECIFIED,
    out_shardings: object = _UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: object = None,
    backend: str | None = None,
    inline: object = False,
    compiler_options: dict[str, Any] | None = None,
    devices: Sequence[Any] | None = None,
    partitioner: Partitioner = "xla",
    **options: object,
) -> Any:
    """``jax.jit`` with shardings that shardlog decides; the program runs with exactly these.

    Arguments, results and errors are as for ``jax.jit``; ``docs/jit.md`` has a table. ``devices`` are by
    default the devices of the mesh. ``options`` are options of ``shardlog.run``, such as ``rules``,
    ``schedule`` and ``annotate``. ``partitioner`` makes the program that each device runs: XLA ("xla"), or
    ``Session.partition`` ("shardlog"). The latter takes more options: ``keep_shardings``, ``topology``,
    ``memory``, ``seconds`` and ``collective_matmul``.

    Derivatives and batches of the function (``jax.grad``, ``jax.jvp``, ``jax.vmap``) are decided and compiled
    in the same way, but without ``annotate`` and ``schedule``, which name the function's own values. Inside
    another ``jax.jit`` the function is part of that program, which XLA partitions as a whole.

    Raises ShardlogError for options that do not exist. A call raises what ``shardlog.run`` does.
    """
    given = {
        name: value for name, value in locals().items() if name in _OF_JAX and value is not _OF_JAX[name]
    }
    decided = _Decided.of(options, devices, partitioner)
    with from_extra("jax", "JAX"):
        from .executing.dispatch import dispatched
    make = partial(dispatched, rules=decided, **given)
    return make if fun is _UNSPECIFIED else make(fun)


_OF_JAX = {
    name: default
    for name, default in (jit.__kwdefaults__ or {}).items()
    if name not in ("devices", "partitioner")
}


@dataclass(frozen=True)
class _Decided:
    """How the programs of a function are decided; ``partition`` are options of ``Session.partition``."""

    options: Options
    devices: Sequence[Any] | None
    partitioner: Partitioner
    partition: Mapping[str, Any]
    transformed: dict[int, tuple[Any, TracedFunction]] = field(
        default_factory=dict
    )  # by the identity of the first

    @classmethod
    def of(cls, options: dict[str, Any], devices: Sequence[Any] | None, partitioner: Partitioner) -> _Decided:
        """The same with the options of a call. Raises ShardlogError for unknown options."""
        if partitioner not in get_args(Partitioner):
            hint = closest(partitioner, get_args(Partitioner))
            raise ShardlogError(f"there is no partitioner {partitioner!r}", where="jit", hint=hint)
        partition = {name: options.pop(name) for name in _PARTITION if name in options}
        if partition and partitioner != "shardlog":
            hint = "give partitioner='shardlog' too: XLA's partitioner has no such options"
            raise ShardlogError(
                f"{next(iter(partition))} applies only to shardlog's partitioner", where="jit", hint=hint
            )
        check_options(options, [*NAMES, *_PARTITION, *_OF_JAX], "jit")  # the latter were taken out
        return cls(Options(**options), devices, partitioner, partition)

    def choose(self, lowered: object, devices: tuple[Any, ...]) -> ChosenModule:
        """The program for a function that JAX lowered."""
        from .executing.compiling import chosen

        result = run_with(lowered, self.options)
        program = Session(result).partition(**self.partition) if self.partitioner == "shardlog" else None
        return chosen(result, self.devices, devices, program)

    def transform(self, call: TracedCall, args: Sequence[Any]) -> Sequence[Any]:
        """The results of a call while JAX differentiates or batches."""
        from .executing.dispatch import dispatched
        from .executing.transformed import TracedFunction, call_p

        if id(call.jaxpr) not in self.transformed:
            options = replace(self.options, annotate=(), schedule=())
            rules = replace(self, options=options, transformed={})
            program = TracedFunction(call, partial(dispatched, rules=rules))
            self.transformed[id(call.jaxpr)] = call.jaxpr, program
        results: Sequence[Any] = call_p.bind(*args, program=self.transformed[id(call.jaxpr)][1])
        return results

    def forget(self) -> None:
        """Drops the programs of derivatives and batches."""
        self.transformed.clear()
