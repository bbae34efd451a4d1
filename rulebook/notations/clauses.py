"""The Datalog of op rules in einsum notation (``einsum.py``).

Each line becomes a rule on the same line, so that messages and proofs have the places of the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from zlib import crc32

from .einsum import FACTS, EinsumRule, Shape, derived_sizes, form, is_ellipsis, is_open, meet, parse_lines

_MANY = 16  # lines that differ only in names become one rule
_BARE = '!attribute_number(s, "sdy.sharding_rule", _)'  # no rule is attached


def compile_lines(file: str, text: str) -> str:
    """The Datalog text of the rules in ``text``, line by line; see ``rules/ops/schema.dl`` for its words."""
    return compile_files({file: text})[file]


def compile_files(texts: Mapping[str, str]) -> dict[str, str]:
    """The Datalog texts of files. If lines of several files fit an op, the last file's counts."""
    kept = re.compile(f"///.*|{FACTS.pattern}")
    by_file: dict[str, str] = {}
    later: dict[tuple[str, bool, int, int], list[EinsumRule]] = {}
    for file, text in list(texts.items())[::-1]:
        compiled = [line if kept.fullmatch(line) else "" for line in text.split("\n")]
        lines = parse_lines(file, text)
        alike = Counter(map(_pattern, lines))
        shared: dict[str, str] = {}
        for line in lines:
            over = [other for other in later.get(form(line), ()) if meet(line, other)]
            pattern = _pattern(line)
            if alike[pattern] < _MANY:
                clauses = [*_clauses(line, over)]
            else:  # lines with one pattern become one rule, in the place of the first
                common = [] if pattern in shared else [*_common(line)]
                clauses = [*common, *_member(line, shared.setdefault(pattern, _relation(line)), over)]
            compiled[line.number - 1] = " ".join(clauses)
        for line in lines:
            later.setdefault(form(line), []).append(line)
        by_file[file] = "\n".join(compiled)
    return {file: by_file[file] for file in texts}


def _clauses(line: EinsumRule, later: Sequence[EinsumRule]) -> Iterator[str]:
    """The Datalog of a line: a relation of its own holds if the shapes fit, and then all that an attached
    `sdy.sharding_rule` would say. One that is attached goes first, and so do ``later`` lines."""
    subject, fits = _subject(line), _relation(line)
    fitting = _holds(line, fits)
    yield f"{fitting} :- {', '.join([subject, *_fits(line, fits), _BARE, *_unless(later)])}."
    yield from _said(line, fitting)
    yield _else(line)
    yield _declared(line, fits)
    yield from _differing(line, fits, subject)


def _common(line: EinsumRule) -> Iterator[str]:
    """The common part of many lines, of which this is the first: the shapes that fit, for the ops that any
    line names, and the conclusions if a line is used."""
    pattern = f"{_relation(line)}_shape"
    named, used = f"{pattern}_named(s)", _holds(line, f"{pattern}_used")
    yield f"{_holds(line, pattern)} :- {', '.join([named, *_fits(line, pattern), _BARE])}."
    yield from _said(line, used)
    yield f".decl {pattern}_named(s: sig)"
    yield _declared(line, pattern)
    yield _declared(line, f"{pattern}_used")
    yield from _differing(line, pattern, named)


def _member(line: EinsumRule, first: str, later: Sequence[EinsumRule]) -> Iterator[str]:
    """The Datalog of a line that has much in common with others."""
    subject, fits, pattern = _subject(line), _relation(line), f"{first}_shape"
    fitting = _holds(line, fits)
    yield f"{pattern}_named(s) :- {subject}."
    yield f"{fitting} :- {', '.join([subject, _holds(line, pattern), *_unless(later)])}."
    yield f"{_holds(line, f'{pattern}_used')} :- {fitting}."
    yield _else(line)
    yield _declared(line, fits)


def _pattern(line: EinsumRule) -> str:
    """All of a line but its name and place."""
    return repr((len(line.operands), line.slots, line.sizes, line.kinds, line.blocked))


def _subject(line: EinsumRule) -> str:
    return f'{"target" if line.custom_call else "op"}(s, "{line.name}")'


def _holds(line: EinsumRule, relation: str) -> str:
    return f"{relation}({', '.join(['s', *_variables(line)])})"


def _unless(later: Sequence[EinsumRule]) -> list[str]:
    return [f"!{_relation(other)}({', '.join(['s', *('_' for _ in _variables(other))])})" for other in later]


def _declared(line: EinsumRule, relation: str) -> str:
    return f".decl {relation}({', '.join(['s: sig', *(f'{v}: number' for v in _variables(line))])})"


def _else(line: EinsumRule) -> str:
    reason = f"its shapes do not fit the rule in {line.file.rpartition('/')[2]}:{line.number}"
    return f'no_rule(s, "{reason}") :- {_subject(line)}, !custom(s).'


def _said(line: EinsumRule, fitting: str) -> Iterator[str]:
    """The factors of an op that a line holds for, and the dimensions that they are in."""
    numbers, heads, single = _numbers(line), ["custom(s)"], _single(line)
    for factor, number in numbers.items():
        if not is_ellipsis(factor):
            kind = line.kinds.get(factor, "pass_through")
            size = line.sizes.get(factor, f"f_{factor}")
            head = f'rule_factor(s, {number}, {size}, "{kind}")'
            if factor in single:
                t, d = single[factor]
                yield f"{head} :- {fitting}, dim(s, {t}, {_place(line.slots[t], d)}, {size})."
            else:
                heads.append(head)
    for t, shape in enumerate(line.slots):
        for d, dim in enumerate(shape):
            place = _place(shape, d)
            heads += [
                f"rule_maps(s, {t}, {place}, {j}, {numbers[f]})"
                for j, f in enumerate(dim)
                if not is_ellipsis(f)
            ]
    heads += [f"rule_blocked(s, {numbers[f]})" for f in line.blocked]
    yield f"{', '.join(heads)} :- {fitting}."
    for t, shape in enumerate(line.slots):
        if is_open(shape):
            number, batch = numbers[shape[0][0]], _batch(shape)
            mapped = f"rule_maps(s, {t}, d, 0, {number} + d)"
            factor = f'rule_factor(s, {number} + d, n, "pass_through")'
            yield f"{mapped}, {factor} :- {fitting}, dim(s, {t}, d, n), d < {batch}."


def _differing(line: EinsumRule, fits: str, subject: str) -> Iterator[str]:
    """Where the dimensions of an ellipsis differ."""
    for t, shape in enumerate(line.slots):
        u = next(
            (u for u, other in enumerate(line.slots[:t]) if is_open(shape) and other[:1] == shape[:1]), None
        )
        if u is not None:
            differ = f"dim(s, {u}, e, m), dim(s, {t}, e, n), m != n, e < r - {len(line.slots[u]) - 1}"
            yield f"{fits}_{t}(s) :- {subject}, slot(s, {u}, _, _, r), {differ}."
            yield f".decl {fits}_{t}(s: sig)"


def _variables(line: EinsumRule) -> list[str]:
    """The variables of a line's relation: how many dimensions an ellipsis stands for, and the sizes that
    neither a dimension nor a number gives alone. (With all sizes, each of a line's clauses would be as
    long as the line.)"""
    derived = [f"f_{factor}" for factor, *_ in derived_sizes(line)]
    return derived + [_batch(((f,),)) for f in line.factors if is_ellipsis(f)]


def _single(line: EinsumRule) -> dict[str, tuple[int, int]]:
    """A dimension (slot, dim) that a factor has to itself, for factors whose sizes no number gives."""
    return {
        dim[0]: (t, d)
        for t, shape in reversed(list(enumerate(line.slots)))
        for d, dim in enumerate(shape)
        if len(dim) == 1 and not is_ellipsis(dim[0]) and dim[0] not in line.sizes
    }


def _relation(line: EinsumRule) -> str:
    """The relation of the ops that a line holds for."""
    return f"fits_{crc32(line.file.encode()):x}_{line.number}"


def _numbers(line: EinsumRule) -> dict[str, str]:
    """The numbers of the factors as terms: each ellipsis takes as many as it has dimensions."""
    numbers, count, batches = {}, 0, ""
    for factor in line.factors:
        numbers[factor] = f"{count}{batches}"
        if is_ellipsis(factor):
            batches += f" + {_batch(((factor,),))}"
        else:
            count += 1
    return numbers


def _batch(shape: Shape) -> str:
    """The variable that counts the dimensions of the ellipsis that the shape begins with."""
    return f"b_{shape[0][0][3:]}"


def _place(shape: Shape, d: int) -> str:
    """The number of dimension ``d`` as written, as a term."""
    return f"{_batch(shape)} + {d - 1}" if is_open(shape) else str(d)


def _fits(line: EinsumRule, relation: str) -> Iterator[str]:
    """The body of a line's rule: as many slots, of these ranks, with equal sizes along each factor."""
    yield f"{len(line.slots)} = count : {{ slot(s, _, _, _, _) }}"
    for factor, size in line.sizes.items():
        yield f"f_{factor} = {size}"
    derived = {(t, d): factor for factor, t, d, _ in derived_sizes(line)}
    first: dict[str, int] = {}
    for t, shape in enumerate(line.slots):
        role, i = ("operand", t) if t < len(line.operands) else ("result", t - len(line.operands))
        if not shape:
            yield f'slot(s, {t}, "{role}", {i}, r_{t}), r_{t} <= 0'
        elif not is_open(shape):
            yield f'slot(s, {t}, "{role}", {i}, {len(shape)})'
        else:
            group, batch = shape[0][0], _batch(shape)
            yield f'slot(s, {t}, "{role}", {i}, r_{t}), {batch} = r_{t} - {len(shape) - 1}, {batch} >= 0'
            if first.setdefault(group, t) != t:
                yield f"!{relation}_{t}(s)"
        for d, dim in enumerate(shape):
            if is_ellipsis(dim[0]):
                continue
            place = _place(shape, d)
            if len(dim) == 1:
                yield f"dim(s, {t}, {place}, f_{dim[0]})"
                continue
            whole = f"n_{t}_{d}"
            yield f"dim(s, {t}, {place}, {whole})"
            if (t, d) in derived:
                others = " * ".join(f"f_{f}" for f in dim if f != derived[t, d])
                yield f"f_{derived[t, d]} = {whole} / ({others})"
            yield f"{whole} = {' * '.join(f'f_{f}' for f in dim)}"
