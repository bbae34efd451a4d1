"""Meshes and annotations given as JAX's objects, converted to text.

A run keeps the texts, so that a saved run knows its options.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeGuard

from ..errors import ShardlogError
from ..program.meshes import quoted
from .annotations import Targets
from .given import Given, Several
from .sources.jax import Interface, visible
from .specs import said_unreduced

if TYPE_CHECKING:
    from jax.sharding import PartitionSpec

_EXPECTED = 'expected a jax.sharding.PartitionSpec or NamedSharding, or a text as in [{"data"}, {}]'


def mesh_text(mesh: Any) -> str:
    """``data=2,model=4`` for a text, a ``jax.sharding.Mesh`` or an ``AbstractMesh``.

    Raises ShardlogError for anything else.
    """
    if isinstance(mesh, str):
        return mesh
    try:
        axes = [(str(name), int(size)) for name, size in mesh.shape.items()]
    except (AttributeError, TypeError, ValueError):
        hint = "expected a text as in data=2,model=4, a jax.sharding.Mesh or an AbstractMesh"
        raise ShardlogError(
            f"cannot read a mesh from a {type(mesh).__name__}", where="mesh", hint=hint
        ) from None
    return axes_text(axes)


def axes_text(axes: Iterable[tuple[str, int]]) -> str:
    """``data=2,model=4`` for axes and their sizes."""
    return ",".join(f"{quoted(name)}={size}" if _odd(name) else f"{name}={size}" for name, size in axes)


def _odd(name: str) -> bool:
    return not name.isidentifier()


def meshes_of(given: Given) -> list[Any]:
    """JAX's meshes of the shardings in annotations."""
    if _are_texts(given):
        return []
    if isinstance(given, Several):
        return [mesh for part in given for mesh in meshes_of(part)]
    from jax import tree

    shardings = tree.leaves(dict(given) if isinstance(given, Mapping) else given, is_leaf=_is_leaf)
    return list(dict.fromkeys(sharding.mesh for sharding in shardings if hasattr(sharding, "spec")))


def annotation_texts(targets: Targets, given: Given, interface: Interface) -> tuple[str, ...]:
    """Annotations (see ``Options.annotate``) as texts, ``name=[{"axis"}, {}]``, one for each value. Of
    ``Several`` the later ones count.

    Raises ShardlogError for values that do not exist or are annotated twice, and for shardings that are
    malformed or fit no argument.
    """
    last: dict[Any, str] = {}
    for part in given if isinstance(given, Several) else (given,):
        own: dict[Any, str] = {}
        for text in _texts(targets, part, interface):
            value, _ = targets.annotated(text)
            if value in own:
                hint = f"leave it or this one out: {own[value]}"
                raise ShardlogError(
                    "another annotation is of this value", where=f"--annotate '{text}'", hint=hint
                )
            own[value] = text
        last |= own
    return tuple(last.values())


def _texts(targets: Targets, given: Given, interface: Interface) -> tuple[str, ...]:
    if _are_texts(given):
        return (given,) if isinstance(given, str) else tuple(given)
    entries: Iterable[tuple[str, Any]]
    if isinstance(given, Mapping):
        entries = chain.from_iterable(_flat(str(name), spec) for name, spec in given.items())
    else:
        entries = _arguments(targets, given, interface)
    return tuple(f"{name}={_text(targets, name, spec)}" for name, spec in entries if spec is not None)


def _are_texts(given: Given) -> TypeGuard[str | Sequence[str]]:
    sequence = isinstance(given, Sequence) and all(isinstance(entry, str) for entry in given)
    return isinstance(given, str) or sequence


def _is_leaf(x: object) -> bool:
    return x is None or isinstance(x, str) or hasattr(x, "spec") or hasattr(x, "unreduced")


def _flat(name: str, specs: object) -> Iterator[tuple[str, Any]]:
    """The shardings of a tree whose root has a name, by the names of its leaves."""
    if _is_leaf(specs):
        yield name, specs
        return
    from jax.tree_util import keystr, tree_flatten_with_path

    for path, spec in tree_flatten_with_path(specs, is_leaf=_is_leaf)[0]:
        yield name + keystr(path), spec


def _arguments(targets: Targets, given: object, interface: Interface) -> Iterator[tuple[str, Any]]:
    """The shardings in a tree prefix of the positional arguments, by argument name.

    Arguments that ``jax.jit`` drops are left out.
    """
    from jax import tree

    numbers = visible(targets.main, "arg_attrs")
    if interface.arguments is None:
        arguments: tuple[Any, ...] = tuple(range(len(numbers)))
        kept = arguments
    else:
        arguments = interface.arguments.unflatten(range(interface.arguments.num_leaves))[0]
        kept = interface.kept
    try:
        specs = tree.leaves(tree.broadcast(given, arguments, is_leaf=_is_leaf), is_leaf=_is_leaf)
    except ValueError as error:
        hint = "expected a tree like the arguments' tree, or a prefix of it, as for in_shardings of jax.jit"
        raise ShardlogError(
            f"the annotations do not match the arguments: {error}", where="annotate", hint=hint
        ) from None
    places = dict(zip(kept, numbers, strict=True))
    for number, spec in zip(tree.leaves(arguments), specs, strict=True):
        if number in places:
            yield targets.argument(places[number]), spec


def _text(targets: Targets, name: str, spec: Any) -> str:
    if isinstance(spec, str):
        return spec
    where = f"annotate {name}"
    if hasattr(spec, "spec"):
        if tuple(spec.mesh.shape.items()) not in targets.meshes():
            hint = "use the mesh of the module, or replace it by the option mesh"
            raise ShardlogError(
                f"the module is not on the mesh of the sharding, {mesh_text(spec.mesh)}",
                where=where,
                hint=hint,
            )
        spec = spec.spec
    if not hasattr(spec, "unreduced"):
        raise ShardlogError(
            f"cannot read a sharding from a {type(spec).__name__}", where=where, hint=_EXPECTED
        )
    rank = targets.rank(name, where)
    entries = spec.partitions  # a spec with unreduced axes does not go over its entries
    if len(entries) > rank:
        message = f"{spec} has {len(entries)} dimensions, and {name} has {rank}"
        raise ShardlogError(message, where=where, hint="give one entry for each dimension")
    dims = [*map(_dimension, entries), *["{}"] * (rank - len(entries))]
    return f"[{', '.join(dims)}]{_unreduced(spec)}"


def _dimension(entry: object) -> str:
    """An entry of a PartitionSpec as Shardy has it; as with JAX, other axes are added to none but
    ``P.UNCONSTRAINED``."""
    if entry is None:
        return "{}"
    names = (entry,) if isinstance(entry, str) else entry
    return "{" + ", ".join(map(quoted, names)) + "}" if isinstance(names, tuple | list) else "{?}"


def _unreduced(spec: PartitionSpec) -> str:
    """The unreduced axes of a spec. Its ``reduced`` axes are ignored: they affect only derivatives."""
    kind = getattr(spec, "unreduced_kind", None)  # JAX 0.10 has sums alone
    return said_unreduced(spec.unreduced, "sum" if kind is None else kind.name)
