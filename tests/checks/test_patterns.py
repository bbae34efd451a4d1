"""Names that differ in numbers, as one pattern."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import shardlog
from shardlog.checks.expect import check, update
from shardlog.checks.patterns import folded

A, B = ("[{}]",), ('[{"x"}]',)


def patterns(entries: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return dict(folded(entries, lambda pattern, shardings: True))


def test_numbers_become_stars_where_all_are_alike() -> None:
    names = [f"p['ResBlock_{i}']['Conv_{j}']['kernel']" for i in range(3) for j in range(2)]
    assert patterns(dict.fromkeys(names, A)) == {"p['ResBlock_*']['Conv_*']['kernel']": A}
    by_conv = {name: (A, B)["Conv_1" in name] for name in names}
    assert patterns(by_conv) == {
        "p['ResBlock_*']['Conv_0']['kernel']": A,
        "p['ResBlock_*']['Conv_1']['kernel']": B,
    }
    assert patterns({names[0]: A, names[2]: B}) == {names[0]: A, names[2]: B}
    assert patterns({"p[0].w_1": A, "p[1].w_1": A, "p[2].w_1": A}) == {"p[*].w_1": A}


def test_what_does_not_count_stays() -> None:
    plain = {"%arg0": A, "%arg1": A, "result#0": A, "result#1": A, "p['w2x']": A, "p['w3x']": A}
    assert patterns(plain) == plain


def test_a_pattern_that_matches_others_is_none(tmp_path: Path) -> None:
    """``b_*`` would match ``b_last`` too."""
    names = {"b_0": "{}", "b_1": "{}", "b_last": '{"x"}', "c_0": "{}", "c_1": "{}"}
    arguments = ", ".join(
        f"%a{i}: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{axes}]>}} loc(\"p['{name}']\")"
        for i, (name, axes) in enumerate(names.items())
    )
    run = shardlog.run(f'sdy.mesh @mesh = <["x"=2]>\nfunc.func @main({arguments}) {{ return }}')
    file = tmp_path / "shardings.toml"
    assert update(run, file)
    _, *lines = file.read_text().splitlines()
    assert [line.partition(" = ")[0].strip('"') for line in lines] == [
        "p['b_0']",
        "p['b_1']",
        "p['b_last']",
        "p['c_*']",
    ]
    assert check(run, file) == []
