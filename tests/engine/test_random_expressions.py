"""Random terms of all types: the core computes what the reference does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardlog.engine import DatalogError, EngineError, load

from ..support.drawing import drawing

CONSTANTS = {
    "number": ["0", "1", "-1", "7", "63", "64", "9223372036854775807", "-9223372036854775808"],
    "unsigned": ["0", "1", "64", "4294967296", "18446744073709551615"],
    "float": ["0.0", "1.0", "-1.5", "0.1", "1000000000000000000000.0", "9007199254740993.0"],
    "symbol": ['""', '"a"', '"12"', '"-7"', '"0x1F"', '"1.5"', '"é"'],
}
INTEGERS = [
    *(f"({{}} {name} {{}})" for name in ["+", "-", "*", "/", "%", "^", "band", "bor", "bxor"]),
    *(f"({{}} {name} {{}})" for name in ["bshl", "bshr", "bshru", "land", "lor", "lxor"]),
    *("(bnot {})", "(lnot {})", "min({}, {})", "max({}, {})"),
]
# The terms of a type that have parts of it, and those that have parts of others.
SAME = {
    "number": [*INTEGERS, "(- {})", "ord({})"],
    "unsigned": INTEGERS,
    "float": ["({} + {})", "({} - {})", "({} * {})", "({} / {})", "({} ^ {})", "(- {})", "min({}, {})"],
    "symbol": ["cat({}, {})", "max({}, {})", "min({}, {})"],
}
OTHERS = {
    "number": [("strlen({})", "symbol"), ("to_number({})", "symbol"), ("ord({})", "symbol")],
    "unsigned": [("to_unsigned({})", "symbol")],
    "float": [("to_float({})", "symbol")],
    "symbol": [("substr(to_string({}), 1, 3)", "number")],
}
NUMERIC = ["number", "unsigned", "float"]
for one in NUMERIC:
    OTHERS["symbol"].append(("to_string({})", one))
    for other in NUMERIC:
        if one != other:
            OTHERS[one] += [(f"to_{one}({{}})", other), (f"as({{}}, {one})", other)]


@st.composite
def terms(draw: st.DrawFn, kind: str, depth: int = 3) -> str:
    """A term; its variables are called by their types."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([f"{kind}_{i}" for i in range(3)] + CONSTANTS[kind][:3]))
    if draw(st.booleans()):
        template, kinds = draw(st.sampled_from(OTHERS[kind]))
    else:
        template, kinds = draw(st.sampled_from(SAME[kind])), kind
    return template.format(*(draw(terms(kinds, depth - 1)) for _ in range(template.count("{}"))))


@pytest.mark.core
@given(st.data())
@drawing(120)
def test_core_is_the_reference(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(CONSTANTS)))
    term = data.draw(terms(kind))
    columns = [f"{name}_{i}: {name}" for name in CONSTANTS for i in range(3)]
    names = [column.partition(":")[0] for column in columns]
    values = [data.draw(st.sampled_from(CONSTANTS[name.partition("_")[0]])) for name in names]
    text = f".decl given({', '.join(columns)})\ngiven({', '.join(values)}).\n"
    text += f".decl found(x: {kind})\nfound({term}) :- given({', '.join(names)}).\n.output found\n"
    try:
        program = load(texts={"term.dl": text})
    except DatalogError as error:  # a constant that does not fit, or one of two types
        assert {found.code for found in error.diagnostics} <= {"E0103", "E0301"}
        return
    found = []
    for backend in ("core", "reference"):
        try:
            found.append(repr(program.evaluate({}, backend=backend)))
        except EngineError as error:
            found.append(str(error).partition(": '")[0])
    assert found[0] == found[1]
