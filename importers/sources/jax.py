"""JAX's objects as programs: functions and their lowered forms, and how JAX calls the module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...program.mlir.types import FunctionOp

# Attributes of a jax.stages.Traced, a jax.export.Exported and a jax.stages.Compiled that a function lacks.
_LOWERED = ("jaxpr", "mlir_module_serialized", "runtime_executable")
# Arguments and results of a module with one of these attributes are JAX's, not the function's.
_HIDDEN = ("jax.global_constant", "jax.token", "jax.const")


@dataclass(frozen=True)
class Interface:
    """The signature of a module's main function in JAX's terms.

    ``arguments`` is the tree of ``(args, kwargs)`` of the function, and ``results`` the tree of its results;
    None if only a module is known. The module has the flat arguments that are ``kept``, in order: ``jax.jit``
    drops unused ones. ``ranks`` are the ranks of all flat arguments and results of the function. (An array of
    random keys has one more dimension in the module.) ``meshes`` are the ``Mesh``es and ``AbstractMesh``es of
    the program, concrete ones first. ``constants`` are arrays that JAX passes to the module before the
    arguments, and ``callbacks`` the functions that it calls. ``alive`` are the objects that the module names
    by ``id``. ``keys`` are the kinds of random keys of the flat results: "" is an array of numbers.
    """

    arguments: Any = None
    results: Any = None
    kept: tuple[int, ...] = ()
    ranks: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    meshes: tuple[Any, ...] = ()
    constants: tuple[Any, ...] = ()
    callbacks: tuple[Any, ...] = ()
    alive: tuple[Any, ...] = ()
    keys: tuple[str, ...] = ()


_EXPLICIT = (
    "shardlog: the mesh has explicit axes, whose shardings JAX decides by itself while it traces. To leave "
    "them to shardlog, as to XLA, make the mesh with axis_types=(AxisType.Auto,) * number of axes."
)


def lowered(source: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Any:
    """The program of ``source``. A function is lowered for its arguments; a ``Traced`` has them already.

    Raises ShardlogError for arguments to anything but a function.
    """
    function = hasattr(source, "trace") or (callable(source) and not isinstance(source, type))
    if function and not any(hasattr(source, name) for name in _LOWERED):
        if not hasattr(source, "trace"):
            import jax

            source = jax.jit(source)
        try:
            source = source.trace(*args, **(kwargs or {}))
        except Exception as error:
            if type(error).__name__ == "ShardingTypeError":
                error.add_note(_EXPLICIT)
            raise
    elif args or kwargs:
        given = f"arguments for a {type(source).__name__}"
        raise ShardlogError(given, hint="only functions take arguments")
    if hasattr(source, "jaxpr") and hasattr(source, "lower"):  # a jaxpr alone has no module
        # The devices do not matter, and there may be none: a mesh can be abstract.
        return source.lower(lowering_platforms=("cpu",))
    return source


def read_jax(source: object) -> tuple[ir.Module | bytes, Interface] | None:
    """The module of a ``jax.stages.Lowered``, or of a ``jax.export.Exported`` as bytecode, and its interface.

    None for anything else.
    """
    if hasattr(source, "mlir_module_serialized"):
        return bytes(source.mlir_module_serialized), _exported(source)
    if hasattr(source, "compiler_ir"):
        return source.compiler_ir("stablehlo"), _lowered(source)
    return None


def visible(function: FunctionOp, which: str) -> list[int]:
    """The numbers of the arguments (``which`` is "arg_attrs") or results ("res_attrs") of a ``func.func``
    that are not JAX's own, such as tokens and hoisted constants."""
    kind = function.type.inputs if which == "arg_attrs" else function.type.results
    if which not in function.attributes:
        return list(range(len(kind)))
    return [
        i for i, entry in enumerate(function.attributes[which]) if not any(name in entry for name in _HIDDEN)
    ]


def _lowered(source: Any) -> Interface:
    from jax import tree

    if getattr(source, "out_tree", None) is None:  # not JAX's own, but something like it
        return Interface()
    infos = tree.leaves(source.args_info)
    lowering = source._lowering
    compiled = lowering.compile_args
    constants = tuple(getattr(lowering, "const_args", ()))  # come first, and count as kept
    kept = sorted(i - len(constants) for i in compiled["kept_var_idx"] if i >= len(constants))
    shardings = [*compiled["in_shardings"], *compiled["out_shardings"], *compiled["intermediate_shardings"]]
    avals = [*compiled["global_in_avals"], *compiled["global_out_avals"]]
    shardings += [aval.sharding for aval in avals if hasattr(aval, "sharding")]
    meshes = [getattr(sharding, "mesh", None) for sharding in shardings]
    results = compiled["global_out_avals"][: source.out_tree.num_leaves]
    return Interface(
        source.in_tree,
        source.out_tree,
        tuple(kept),
        (_ranks(infos), _ranks(results)),
        _meshes([compiled["context_mesh"], *meshes]),
        constants,
        tuple(compiled["host_callbacks"]),
        tuple(compiled["keepalive"]),
        _keys(results),
    )


def _exported(source: Any) -> Interface:
    named = [*(source._in_named_shardings or ()), *(source._out_named_shardings or ())]
    return Interface(
        source.in_tree,
        source.out_tree,
        tuple(source.module_kept_var_idx),
        (_ranks(source.in_avals), _ranks(source.out_avals)),
        _meshes(getattr(sharding, "mesh", None) for sharding in named),
        keys=_keys(source.out_avals),
    )


def _keys(avals: Iterable[Any]) -> tuple[str, ...]:
    return tuple(getattr(getattr(aval.dtype, "_impl", None), "name", "") for aval in avals)


def _ranks(arrays: Iterable[Any]) -> tuple[int, ...]:
    return tuple(len(getattr(array, "shape", ())) for array in arrays)


def _meshes(candidates: Iterable[Any]) -> tuple[Any, ...]:
    from jax.sharding import Mesh

    meshes = list(dict.fromkeys(mesh for mesh in candidates if mesh is not None and mesh.axis_names))
    return tuple(sorted(meshes, key=lambda mesh: not isinstance(mesh, Mesh)))
