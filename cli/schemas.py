"""The JSON schema of what each command prints with ``--json``: a schema of the whole document.

Data classes that are printed as they are have their schema from their fields.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from ..checks.findings import Finding
from ..cost.ahead import Kept, Memory
from ..cost.beside import Beside
from ..cost.cost import Held, Item
from ..datalog.profile import Profile
from ..explanations.explanation import Loss, Site
from ..explanations.questions.collective import Because, Begun, Placed, Way
from ..explanations.questions.diff import Tensor
from ..explanations.questions.pins import Chosen, Pinned
from ..explanations.questions.unreduced import Unreduced
from ..propagation.fixpoint import Stage as Statistics
from ..runs import accounts as stages
from ..runs.choice import ProgramChoice
from ..runs.executing.collectives import Collective
from ..runs.records.record import Stage
from ..runs.result import UnknownOp

Schema = dict[str, Any]


def schema(command: str) -> Schema:
    """The schema of what a command prints."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"what shardlog {command} --json prints",
        **_DOCUMENTS[command],
    }


def _of(kind: Any) -> Schema:
    """The schema of a type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is ProgramChoice:
        return _TEXT  # its name
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return _object(**{field.name: _of(hints[field.name]) for field in fields(kind)})
    if origin in (Union, UnionType):
        return {"anyOf": [_of(argument) for argument in arguments]}
    if origin is tuple and arguments[-1:] == (Ellipsis,):
        return _array(_of(arguments[0]))
    if origin is tuple:
        items = [_of(argument) for argument in arguments]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    return {"type": _PLAIN[kind]}


_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def _object(optional: Schema | None = None, /, **required: Schema) -> Schema:
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(value: Schema) -> Schema:
    return {"anyOf": [value, _of(NoneType)]}


_TEXT, _NUMBER, _FLAG = _of(str), _of(int), _of(bool)
_SIZE = _of(float)
_TEXTS, _NUMBERS = _array(_TEXT), _array(_NUMBER)
_SITE, _STAGE = _of(Site), _of(Stage)

_GIVEN = _object(value=_TEXT, where=_TEXT, stack=_TEXT, sharding=_TEXT, by=_TEXT)
_PROOF = _object(tuple=_TEXT, rule=_TEXT, sentence=_TEXT, premises=_NUMBERS, counted=_NUMBERS)
_STEP = _object(
    {"proof": _array(_PROOF)},  # with --full
    kind={"enum": ["propagation", "priority"]},
    site=_SITE,
    axis=_TEXT,
    op=_TEXT,
    where=_TEXT,
    stack=_TEXT,
    source=_SITE,
    from_slot=_TEXT,
    to_slot=_TEXT,
    factor=_TEXT,
    stage=_STAGE,
    change=_NUMBER,
    sentence=_TEXT,
    rule=_TEXT,
    rests_on=_TEXTS,
    lost=_array(_of(Loss)),
)
_PROVED = _object(proof_steps=_NUMBER, derived_again=_FLAG, also_needed=_TEXTS)
_WHY = _object(
    {"verified": _PROVED},  # with --verify
    site=_SITE,
    axis=_TEXT,
    steps=_array(_STEP),
    origin=_GIVEN,
    needs=_array(_GIVEN),
)

_WHYS = _array({"anyOf": [_WHY, _of(Unreduced)]})

_MOVED = _object(
    program=_TEXT,
    collective=_of(Collective),
    before=_TEXTS,
    after=_TEXTS,
    partial=_TEXT,
    steps=_array(_NUMBER),
    begun=_array(_of(Begun)),
    chosen=_array(_of(Placed)),
    topology=_or_null(_TEXT),
    written=_FLAG,
    inside=_FLAG,
    ways=_array(_of(Way)),
    because=_array(_of(Because)),
    causes=_array(_WHY),
    beside=_or_null(_of(Beside)),
)

_WORDS = {"reason": _TEXT, "sentence": _TEXT, "rule": _TEXT, "culprit": _TEXT}
_BEFORE = _object(
    stage=_STAGE, op=_TEXT, where=_TEXT, stack=_TEXT, site=_SITE, reasons=_array(_object(**_WORDS))
)
_REASONS = _array(_object(**_WORDS, before=_or_null(_BEFORE)))
_STOP = _object(
    op=_TEXT,
    where=_TEXT,
    stack=_TEXT,
    near=_SITE,
    far=_SITE,
    factor=_TEXT,
    distance=_NUMBER,
    reasons=_REASONS,
)
_WHY_NOT = _object(
    {"verified": _object(without=_TEXT, then=_TEXT)},  # with --verify
    site=_SITE,
    axis=_TEXT,
    here=_REASONS,
    stops=_array(_STOP),
    visited=_NUMBER,
)

_CONFLICT = _object(
    op=_TEXT,
    where=_TEXT,
    stack=_TEXT,
    tensor=_TEXT,
    type=_TEXT,
    slot=_TEXT,
    has=_TEXTS,
    needs=_TEXTS,
    partial=_TEXT,
    collective=_TEXT,
    bytes=_NUMBER,
    numbers=_NUMBERS,  # of its collectives
    executions=_or_null(_NUMBER),  # where a loop does not say how many turns it takes
    origin=_TEXT,
    against=_TEXT,
)

_CAUSE = _object(
    dim=_NUMBER,
    axis=_TEXT,
    missing=_FLAG,
    sentence=_TEXT,
    explanation={"anyOf": [_WHY, _WHY_NOT, _of(NoneType)]},
)
_DIFFERENCE = _object(
    where=_TEXT,
    key=_TEXT,
    value=_TEXT,
    type=_TEXT,
    place=_TEXT,
    stack=_TEXT,
    expected=_TEXT,
    found=_or_null(_TEXT),
    causes=_array(_CAUSE),
)
_FINDINGS = _array(_of(Finding))

_PARTING = _object(
    has={"enum": [1, 2]},
    axis=_TEXT,
    site=_SITE,
    op=_TEXT,
    where=_TEXT,
    stack=_TEXT,
    why=_TEXT,
    why_not=_TEXT,
    dims=_array(_object(value=_TEXT, dim=_NUMBER)),
)
_DIFF = _object(
    runs=_TEXTS,
    compared=_NUMBER,
    alone=_NUMBERS,
    tensors=_array(_of(Tensor)),
    partings=_array(_PARTING),
)

_LIMITED = _object(compute=_SIZE, launch=_SIZE, links=_SIZE, memory=_SIZE)
_LAYER = _object(
    label=_TEXT,
    times=_NUMBER,
    seconds=_SIZE,
    limited=_LIMITED,
    parts=_array({"$ref": "#/$defs/layer"}),
)

_RULE = _object(file=_TEXT, line=_NUMBER, text=_TEXT)
_STEP = _object(
    id=_NUMBER,
    fact=_TEXT,
    relation=_TEXT,
    rule=_or_null(_RULE),
    sentence=_TEXT,
    premises=_NUMBERS,
    counted=_NUMBERS,
    conditions=_TEXTS,
    open=_FLAG,
    joined=_FLAG,
    replaced=_FLAG,
    replaced_by=_or_null(_TEXT),
)
_PROOF = _object(fact=_TEXT, height=_NUMBER, steps=_array(_STEP))
_ATTEMPT = _object(rule=_RULE, found=_TEXTS, missing=_TEXT, complete=_FLAG)

_DOCUMENTS = {
    "profile": _of(Profile),
    "datalog": {"anyOf": [_PROOF, _object(fact=_TEXT, attempts=_array(_ATTEMPT))]},  # with --explain-not
    "run": _object(
        # With --stages, and with --fail-on.
        {"priorities": _array(_of(stages.Account)), "program": _TEXT, "findings": _FINDINGS},
        stages=_array(_of(Statistics)),
        unknown_ops=_array(_of(UnknownOp)),
    ),
    "partition": _object(program=_TEXT, bytes=_NUMBER, collectives=_array(_of(Collective))),
    "cost": _object(
        program=_TEXT,
        topology=_TEXT,
        seconds=_SIZE,
        limited=_LIMITED,
        sure={"type": "object", "additionalProperties": _SIZE},  # seconds, by how sure they are
        launches=_NUMBER,
        waits=_SIZE,
        flops=_SIZE,
        redundant=_SIZE,
        touched=_SIZE,
        sent=_SIZE,
        peak=_NUMBER,
        open=_FLAG,  # whether loops that do not say how many turns they take count one
        memory=_NUMBER,
        host=_NUMBER,  # bytes of the host's memory
        held=_array(_of(Held)),
        items=_array(_of(Item)),
        layers=_array({"$ref": "#/$defs/layer"}),
    )
    | {"$defs": {"layer": _LAYER}},
    "compile": _object(
        program=_TEXT,
        target=_TEXT,
        devices=_NUMBER,
        memory=_object(**_of(Memory)["properties"], total=_NUMBER),
        collectives=_array(_of(Kept)),
        flops=_SIZE,
        compiled_flops=_or_null(_SIZE),
    ),
    "exec": _object(
        program=_TEXT,
        devices=_NUMBER,
        seeds=_array(_NUMBER),  # of random inputs: more than one where results were not right at first
        results=_array(
            _object(
                name=_TEXT,
                type=_TEXT,
                off=_or_null(_SIZE),
                allowed=_SIZE,
                off_from_64_bits=_or_null(_SIZE),  # where that settles it
                one_device_off_from_64_bits=_or_null(_SIZE),
                inputs_divided_by=_NUMBER,  # of random ones, so that it can be judged
                right=_or_null(_FLAG),  # where it cannot be judged
                reason=_or_null(_TEXT),  # why not
            )
        ),
    ),
    "query": _array({"type": "object", "additionalProperties": {"type": ["string", "number"]}}),
    # The second with --collective, the third with --no-keep-shardings.
    "why": {"anyOf": [_WHYS, _MOVED, _object(why=_WHYS, chosen=_array(_of(Chosen)))]},
    "why-not": _array(_WHY_NOT),
    "conflicts": _object(program=_TEXT, bytes=_NUMBER, conflicts=_array(_CONFLICT)),
    "diff": _DIFF,
    "what-if": {
        "anyOf": [
            _object(
                program=_TEXT,
                bytes=_or_null(_object(before=_NUMBER, after=_NUMBER)),
                unpartitioned=_TEXT,
                diff=_DIFF,
            ),
            _of(Pinned),  # with --pin
        ]
    },
    "expect": _object(
        {"program": _TEXT},  # with --fail-on
        differences=_array(_DIFFERENCE),
        findings=_FINDINGS,
    ),
    "ops": _array(_object(op=_TEXT, signatures=_NUMBER, rule=_TEXT, says=_TEXT)),
}
