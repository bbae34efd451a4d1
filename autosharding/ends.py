"""The boundary of a module: its arguments and results, the fixed ones among them, and the state that each
step passes to the next."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from math import prod
from typing import Any

from jaxlib.mlir import ir

from ..errors import ShardlogError, closest
from ..program.elements import bits_of
from ..program.function import sharding_of
from ..program.mlir.modules import boundary_attributes, main_function, symbols
from ..program.mlir.places import argument_path, components, result_path
from .options import TIES

_DEEPER = re.compile(r"[.\[]")  # begins what is below a name
_LEAST = 2  # equal types in a row from which results without names count as state


@dataclass(frozen=True)
class End:
    """An argument or a result: its name and type, its shape (None if it is not a tensor), and the sharding
    that it keeps, empty if it is free."""

    name: str
    type: str
    shape: tuple[int, ...] | None
    fixed: str = ""
    bytes: int = 0


@dataclass(frozen=True)
class Ends:
    """The arguments and results of a module. For results that become arguments of the next step, ``state``
    has these, by number."""

    arguments: tuple[End, ...]
    results: tuple[End, ...]
    state: Mapping[int, int]


def ends_of(module: ir.Module, tie: Sequence[str]) -> Ends:
    """The boundary of a module. ``tie`` is the option of ``AutoOptions``.

    Raises ShardlogError for names that do not exist, for a tie of two types, and for unknown sizes.
    """
    functions = symbols(module, "func.func")
    main = functions[main_function(functions)]
    with module.context:
        argument_attributes, result_attributes = (
            boundary_attributes(main, label) for label in ("arg_attrs", "res_attrs")
        )
        names = [argument_path(value.location) for value in main.arguments]
        arguments = tuple(
            _end(name or f"arg{n}", type_, attributes)
            for n, (name, type_, attributes) in enumerate(
                zip(names, main.type.inputs, argument_attributes, strict=True)
            )
        )
        paths = [result_path(main, n) for n in range(len(main.type.results))]
        results = tuple(
            _end(name or f"result{n}", type_, attributes)
            for n, (name, type_, attributes) in enumerate(
                zip(paths, main.type.results, result_attributes, strict=True)
            )
        )
        donated = dict(_donated(argument_attributes, arguments, results))
    ends = Ends(arguments, results, {})
    texts = [text for text in tie if text not in TIES]
    state = {} if "none" in tie or texts else donated or _by_name(names, paths, ends) or _by_type(ends)
    for text in texts:
        for result, argument in _tied(text, ends).items():
            if state.setdefault(result, argument) != argument:
                tied = f"{ends.results[result].name} is tied to {ends.arguments[state[result]].name}"
                raise ShardlogError(tied, where=f"--tie '{text}'", hint="tie a result to one argument")
    return Ends(arguments, results, dict(sorted(state.items())))


def _end(name: str, type_: Any, attributes: Any) -> End:
    shape, bytes_ = None, 0
    if isinstance(type_, ir.RankedTensorType):
        if not type_.has_static_shape:
            hint = "automatic sharding needs sizes: lower the function for arguments of known shapes"
            raise ShardlogError(f"{name} is a {type_}, whose sizes are not known", where="auto", hint=hint)
        shape = tuple(type_.shape)
        bytes_ = prod(shape) * (bits_of(str(type_.element_type)) or 8) // 8
    return End(name, str(type_), shape, _dimensions(sharding_of(attributes)), bytes_)


def _dimensions(sharding: Any) -> str:
    """The dimensions of a sharding, as text; empty without one."""
    text = "" if sharding is None else str(sharding)
    return text[text.index("[") : text.rindex("]") + 1] if "[" in text else ""


def _donated(
    given: Sequence[Any], arguments: Sequence[End], results: Sequence[End]
) -> Iterator[tuple[int, int]]:
    """The results that replace donated arguments: as the module says, or by type."""
    open_results, donors = dict(enumerate(results)), list[int]()
    for n, attributes in enumerate(given):
        if "tf.aliasing_output" in attributes:
            result = ir.IntegerAttr(attributes["tf.aliasing_output"]).value
            open_results.pop(result, None)
            yield result, n
        elif "jax.buffer_donor" in attributes:
            donors.append(n)
    for n in donors:
        alike = (result for result, end in open_results.items() if end.type == arguments[n].type)
        for result in alike:
            del open_results[result]
            yield result, n
            break


def _by_name(names: Sequence[str], paths: Sequence[str], ends: Ends) -> dict[int, int]:
    """The results whose paths end like the paths of arguments of their type only: ``[0]['w']`` and
    ``params['w']``. Several matches are paired in the order of the arguments."""
    by_path = defaultdict[tuple[str, ...], list[int]](list)
    for n, name in enumerate(names):
        by_path[components(name)[1:]].append(n)
    tied, taken = dict[int, int](), set[int]()
    for result, path in enumerate(paths):
        parts = components(path.removeprefix("result"))
        for least in range(len(parts)):
            alike = [
                n
                for n in by_path.get(parts[least:], ())
                if n not in taken and ends.arguments[n].type == ends.results[result].type
            ]
            if alike:
                tied[result] = alike[0]
                taken.add(alike[0])
                break
    return tied


def _by_type(ends: Ends) -> dict[int, int]:
    """The results whose sequence of types equals that of some arguments."""
    matcher = SequenceMatcher(
        None, [end.type for end in ends.arguments], [end.type for end in ends.results], autojunk=False
    )
    tied = dict[int, int]()
    for block in matcher.get_matching_blocks():
        if block.size >= _LEAST:
            tied |= {block.b + n: block.a + n for n in range(block.size)}
    return tied


def _tied(text: str, ends: Ends) -> dict[int, int]:
    """The results that a text such as "params=result[0]" ties to arguments: those below both names."""
    where = f"--tie '{text}'"
    argument, equals, result = (part.strip() for part in text.partition("="))
    if not (argument and equals and result):
        hint = f"expected an argument and a result, as in params=result[0], or {' or '.join(TIES)}"
        raise ShardlogError("not a tie", where=where, hint=hint)
    below = [
        named(name, each, where, noun)
        for name, each, noun in ((argument, ends.arguments, "argument"), (result, ends.results, "result"))
    ]
    if len(below[0]) != len(below[1]):
        message = f"{argument} are {len(below[0])} arguments, and {result} {len(below[1])} results"
        raise ShardlogError(message, where=where, hint="tie an argument and a result with as many parts")
    for n, m in zip(*below, strict=True):
        one, other = ends.arguments[n], ends.results[m]
        if one.type != other.type:
            message = f"{one.name} is a {one.type}, and {other.name} a {other.type}"
            raise ShardlogError(message, where=where, hint="tie a result to an argument of its type")
    return dict(zip(below[1], below[0], strict=True))


def named(name: str, ends: Sequence[End], where: str, noun: str) -> list[int]:
    """The numbers of the ends with a name, or below it: ``params`` includes ``params['w']``. ``%arg3`` and
    ``result#2`` are by number. Raises ShardlogError if there are none."""
    numbers = {end.name: n for n, end in enumerate(ends)}
    numbers |= {(f"%arg{n}" if noun == "argument" else f"result#{n}"): n for n in range(len(ends))}
    if name in numbers:
        return [numbers[name]]
    below = [n for n, end in enumerate(ends) if end.name.startswith(name) and end.name[len(name)] in "[."]
    if not below:
        names = dict.fromkeys([*(_DEEPER.split(end.name)[0] for end in ends), *numbers])
        raise ShardlogError(f"there is no {noun} {name}", where=where, hint=closest(name, names))
    return below
