"""The JSON schema of each command's output with ``--json``: a schema of the whole document.

Data classes that are printed unchanged get their schema from their fields.
"""

from __future__ import annotations

from types import NoneType

from ..autosharding.plan import Tried
from ..checks.findings import Finding
from ..checks.verdict import Problem, Totals
from ..console.schemas import (
    FLAG,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    Schema,
    array,
    document,
    of_datalog,
    of_type,
    or_null,
    record,
)
from ..cost.account import HeldMemory
from ..cost.ahead import KeptCollectives, Memory
from ..cost.beside import Beside
from ..cost.formulas import Formulas
from ..cost.items import Item
from ..datalog.profile import Profile
from ..explanations.answers.collective import Because, Begun, ChosenHome, ComparedWay
from ..explanations.answers.diff import TensorDiff
from ..explanations.answers.mutated import Mutated, MutatedFormulas
from ..explanations.answers.pins import ChosenSharding, Pinned
from ..explanations.answers.unreduced import Unreduced
from ..explanations.steps import Loss, Site
from ..propagation.fixpoint import StageStatistics
from ..runs import accounts as stages
from ..runs.choice import ProgramChoice
from ..runs.collectives import Collective
from ..runs.data import UnknownOp
from ..runs.records.record import Stage


def schema(command: str) -> Schema:
    """The schema of a command's output."""
    return document(f"what shardlog {command} --json prints", _DOCUMENTS[command])


def _of(kind: type) -> Schema:
    """The schema of a type."""
    return of_type(kind, as_text=(ProgramChoice,))


_SIZE = _of(float)
_SITE, _STAGE = _of(Site), _of(Stage)

# The spec of an argument or a result: for each dimension nothing, an axis, or several.
_SPEC = array({"anyOf": [{"type": "null"}, TEXT, TEXTS]})
_PLACED = array(record(name=TEXT, spec=_SPEC))
_GIVEN = record(value=TEXT, where=TEXT, stack=TEXT, sharding=TEXT, by=TEXT)
_PROOF = record(tuple=TEXT, rule=TEXT, sentence=TEXT, premises=NUMBERS, counted=NUMBERS)
_STEP = record(
    {"proof": array(_PROOF)},  # with --full
    kind={"enum": ["propagation", "priority", "visit"]},
    site=_SITE,
    axis=TEXT,
    op=TEXT,
    where=TEXT,
    stack=TEXT,
    source=_SITE,
    from_slot=TEXT,
    to_slot=TEXT,
    factor=TEXT,
    stage=_STAGE,
    change=NUMBER,
    sentence=TEXT,
    rule=TEXT,
    candidate=TEXT,
    rests_on=TEXTS,
    lost=array(_of(Loss)),
)
_PROVED = record(proof_steps=NUMBER, derived_again=FLAG, also_needed=TEXTS)
_WHY = record(
    {"verified": _PROVED},  # with --verify
    site=_SITE,
    axis=TEXT,
    steps=array(_STEP),
    origin=_GIVEN,
    needs=array(_GIVEN),
)

_WHYS = array({"anyOf": [_WHY, _of(Unreduced)]})

_MOVED = record(
    program=TEXT,
    collective=_of(Collective),
    before=TEXTS,
    after=TEXTS,
    partial=TEXT,
    steps=array(NUMBER),
    begun=array(_of(Begun)),
    chosen=array(_of(ChosenHome)),
    topology=or_null(TEXT),
    written=FLAG,
    inside=FLAG,
    maps=TEXT,
    ways=array(_of(ComparedWay)),
    because=array(_of(Because)),
    causes=array(_WHY),
    beside=or_null(_of(Beside)),
)

_WORDS = {"reason": TEXT, "sentence": TEXT, "rule": TEXT, "culprit": TEXT}
_BEFORE = record(stage=_STAGE, op=TEXT, where=TEXT, stack=TEXT, site=_SITE, reasons=array(record(**_WORDS)))
_REASONS = array(record(**_WORDS, before=or_null(_BEFORE)))
_STOP = record(
    op=TEXT,
    where=TEXT,
    stack=TEXT,
    near=_SITE,
    far=_SITE,
    factor=TEXT,
    distance=NUMBER,
    reasons=_REASONS,
)
_WHY_NOT = record(
    {"verified": record(without=TEXT, then=TEXT)},  # with --verify
    site=_SITE,
    axis=TEXT,
    here=_REASONS,
    stops=array(_STOP),
    visited=NUMBER,
)

_CONFLICT = record(
    op=TEXT,
    where=TEXT,
    stack=TEXT,
    tensor=TEXT,
    type=TEXT,
    slot=TEXT,
    has=TEXTS,
    needs=TEXTS,
    partial=TEXT,
    collective=TEXT,
    bytes=NUMBER,
    numbers=NUMBERS,  # of its collectives
    executions=or_null(NUMBER),  # where a loop does not say how many turns it takes
    origin=TEXT,
    against=TEXT,
)

_CAUSE = record(
    dim=NUMBER,
    axis=TEXT,
    missing=FLAG,
    sentence=TEXT,
    explanation={"anyOf": [_WHY, _WHY_NOT, _of(NoneType)]},
)
_DIFFERENCE = record(
    where=TEXT,
    key=TEXT,
    value=TEXT,
    type=TEXT,
    place=TEXT,
    stack=TEXT,
    expected=TEXT,
    found=or_null(TEXT),
    causes=array(_CAUSE),
)
_FINDINGS = array(_of(Finding))

_PARTING = record(
    has={"enum": [1, 2]},
    axis=TEXT,
    site=_SITE,
    op=TEXT,
    where=TEXT,
    stack=TEXT,
    why=TEXT,
    why_not=TEXT,
    dims=array(record(value=TEXT, dim=NUMBER)),
)
_DIFF = record(
    runs=TEXTS,
    compared=NUMBER,
    alone=NUMBERS,
    tensors=array(_of(TensorDiff)),
    partings=array(_PARTING),
)

_LIMITED = record(compute=_SIZE, launch=_SIZE, links=_SIZE, memory=_SIZE)
_LAYER = record(
    label=TEXT,
    times=NUMBER,
    seconds=_SIZE,
    limited=_LIMITED,
    parts=array({"$ref": "#/$defs/layer"}),
)

_DOCUMENTS = {
    "profile": _of(Profile),
    "datalog": of_datalog(),
    "run": record(
        # With --stages, and with --fail-on.
        {"priorities": array(_of(stages.Account)), "program": TEXT, "findings": _FINDINGS},
        stages=array(_of(StageStatistics)),
        unknown_ops=array(_of(UnknownOp)),
    ),
    "simplify": record(rewrites={"type": "object", "additionalProperties": NUMBER}),
    "partition": record(program=TEXT, bytes=NUMBER, collectives=array(_of(Collective))),
    "auto": record(
        version=NUMBER,
        mesh=TEXT,
        topology=TEXT,
        seconds=_SIZE,
        peak=NUMBER,
        sum=or_null(_SIZE),
        bound=or_null(_SIZE),
        gap=or_null(_SIZE),
        arguments=_PLACED,
        results=_PLACED,
        state={"type": "object", "additionalProperties": NUMBER},  # of results: the arguments that they are
        memory=or_null(NUMBER),
        tried=array(_of(Tried)),
        others=array(array(record(spec=_SPEC, seconds=_SIZE, op=TEXT, where=TEXT))),  # of each argument
        notes=TEXTS,
    ),
    "diff-plan": record(
        mesh=TEXTS,
        seconds=array(_SIZE),
        peak=NUMBERS,
        changed=array(record(what=TEXT, name=TEXT, before=or_null(_SPEC), after=or_null(_SPEC))),
    ),
    # With sizes that are not known, formulas.
    "cost": {
        "anyOf": [
            record(
                program=TEXT,
                topology=TEXT,
                seconds=_SIZE,
                limited=_LIMITED,
                sure={"type": "object", "additionalProperties": _SIZE},  # seconds, by how sure they are
                launches=NUMBER,
                waits=_SIZE,
                late=_SIZE,  # of these, those before kernels outside of loops
                flops=_SIZE,
                redundant=_SIZE,
                touched=_SIZE,
                sent=_SIZE,
                peak=NUMBER,
                open=FLAG,  # whether loops of unknown trip count count one iteration
                memory=NUMBER,
                host=NUMBER,  # bytes of the host's memory
                held=array(_of(HeldMemory)),
                items=array(_of(Item)),
                layers=array({"$ref": "#/$defs/layer"}),
            ),
            _of(Formulas),
        ]
    }
    | {"$defs": {"layer": _LAYER}},
    "compile": record(
        program=TEXT,
        target=TEXT,
        devices=NUMBER,
        memory=record(**_of(Memory)["properties"], total=NUMBER),
        collectives=array(_of(KeptCollectives)),
        flops=_SIZE,
        compiled_flops=or_null(_SIZE),
    ),
    "exec": record(
        program=TEXT,
        devices=NUMBER,
        seeds=array(NUMBER),  # of random inputs: more than one where results were not right at first
        results=array(
            record(
                name=TEXT,
                type=TEXT,
                off=or_null(_SIZE),
                allowed=_SIZE,
                off_from_64_bits=or_null(_SIZE),  # where that settles it
                one_device_off_from_64_bits=or_null(_SIZE),
                inputs_divided_by=NUMBER,  # of random ones, so that it can be judged
                right=or_null(FLAG),  # where it cannot be judged
                reason=or_null(TEXT),  # why not
            )
        ),
    ),
    "query": array({"type": "object", "additionalProperties": {"type": ["string", "number"]}}),
    # The second with --collective, the third with --no-keep-shardings.
    "why": {"anyOf": [_WHYS, _MOVED, record(why=_WHYS, chosen=array(_of(ChosenSharding)))]},
    "why-not": array(_WHY_NOT),
    "conflicts": record(program=TEXT, bytes=NUMBER, conflicts=array(_CONFLICT)),
    "diff": _DIFF,
    "what-if": {
        "anyOf": [
            record(
                program=TEXT,
                bytes=or_null(record(before=NUMBER, after=NUMBER)),
                unpartitioned=TEXT,
                diff=_DIFF,
            ),
            _of(Pinned),  # with --pin
        ]
    },
    "mutate": {"anyOf": [_of(Mutated), _of(MutatedFormulas)]},
    "expect": record(
        {"program": TEXT},  # with --fail-on
        differences=array(_DIFFERENCE),
        findings=_FINDINGS,
    ),
    "check": record(
        program=TEXT,
        checks=TEXTS,
        problems=array(_of(Problem)),
        changes=or_null(
            record(
                baseline=TEXT,
                before=_of(Totals),
                after=_of(Totals),
                new=array(_of(Collective)),
                gone=array(_of(Collective)),
                diff=_DIFF,
            )
        ),
    ),
    "ops": array(record(op=TEXT, signatures=NUMBER, rule=TEXT, says=TEXT)),
}
