"""Lines of einsum notation: they mean what the same text means to JAX, and errors say where they are."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax._src.custom_partitioning_sharding_rule import sdy_sharding_rule_to_mlir, str_to_sdy_sharding_rule
from jaxlib.mlir import ir
from shardlog import ShardlogError, run
from shardlog.engine import DatalogError, load
from shardlog.rulebook.book import RuleBook
from shardlog.rulebook.notations.clauses import compile_lines
from shardlog.rulebook.shipped import RULES
from shardlog.rulekit.case import file_cases
from shardlog.rulekit.origin import Origins, RuleOrigin
from shardlog.rulekit.show import notation

from ..support import oracle
from ..support.drawing import drawing

Shapes = list[tuple[int, ...]]


def types(shapes: Shapes) -> list[str]:
    return [f"tensor<{''.join(f'{n}x' for n in shape)}f32>" for shape in shapes]


def call(operands: Shapes, results: Shapes) -> str:
    """A module with a custom call."""
    arguments = ", ".join(f"%{i}: {t}" for i, t in enumerate(types(operands)))
    names = ", ".join(f"%{i}" for i in range(len(operands)))
    signature = f"({', '.join(types(operands))}) -> ({', '.join(types(results))})"
    attributes = '{call_target_name = "kernel"}'
    op = f'%r:{len(results)} = "stablehlo.custom_call"({names}) {attributes} : {signature}'
    return f"func.func @f({arguments}) {{\n  {op}\n  return\n}}\n"


def ours(tmp_path: Path, line: str, operands: Shapes, results: Shapes, others: int = 0) -> str:
    """The rule of a call by a line, after so many lines that differ in their names alone."""
    rules = tmp_path / "kernel.rules"
    rules.write_text("".join(f"@{name}: {line}\n" for name in (*(f"k{i}" for i in range(others)), "kernel")))
    (case,) = (c for c in file_cases(call(operands, results), RuleBook([rules])) if c.name == "@kernel")
    return notation(case) if case.answers["known"] else f"no rule: {case.answers['no_rule'][0][0]}"


def theirs(rule: str, options: dict[str, Any], operands: Shapes, results: Shapes) -> str:
    with oracle.context():
        attribute = sdy_sharding_rule_to_mlir(
            str_to_sdy_sharding_rule(rule, **options),
            [ir.Type.parse(t) for t in types(operands)],
            [ir.Type.parse(t) for t in types(results)],
        )
        return str(attribute).removeprefix("#sdy.op_sharding_rule<").removesuffix(", custom>")


@pytest.mark.parametrize(
    ("rule", "written", "options", "operands", "results"),
    [
        ("i j, j k -> i k", "reduction={j}", {"reduction_factors": ("j",)}, [(8, 4), (4, 2)], [(8, 2)]),
        ("... i, ... j -> ... i j", "", {}, [(2, 3, 5), (2, 3, 7)], [(2, 3, 5, 7)]),
        ("...1 i, ...2 i -> ...2 i", "", {}, [(2, 5), (3, 4, 5)], [(3, 4, 5)]),
        ("(g h) d, g d -> (g h) d", "{h=4}", {"h": 4}, [(8, 16), (2, 16)], [(8, 16)]),
        ("g, (h g) -> (h g)", "{h=4}", {"h": 4}, [(2,), (8,)], [(8,)]),
        ("i, -> i", "permutation={i}", {"permutation_factors": ("i",)}, [(4,), ()], [(4,)]),
        (
            "b t, t -> t, t",
            "reduction={b} need_replication={t}",
            {"reduction_factors": ("b",), "need_replication_factors": ("t",)},
            [(8, 4), (4,)],
            [(4,), (4,)],
        ),
    ],
)
def test_like_jax(
    tmp_path: Path, rule: str, written: str, options: dict[str, Any], operands: Shapes, results: Shapes
) -> None:
    expected = theirs(rule, options, operands, results)
    assert ours(tmp_path, f"{rule} {written}", operands, results) == expected
    assert ours(tmp_path, f"{rule} {written}", operands, results, others=20) == expected


def test_sizes_are_told_by_other_dimensions(tmp_path: Path) -> None:
    written = ours(tmp_path, "(g h) d, g d -> (g h) d", [(8, 16), (2, 16)], [(8, 16)])
    assert written == "([ij, k], [i, k])->([ij, k]) {i=2, j=4, k=16}"


@pytest.mark.parametrize(
    ("operands", "results"),
    [
        ([(8, 4), (3, 2)], [(8, 2)]),  # j is 4 and 3
        ([(8, 4), (4, 2)], [(8, 2, 1)]),  # another rank
        ([(8, 4), (4, 2), (4, 2)], [(8, 2)]),  # an operand more
    ],
)
def test_shapes_that_do_not_fit(tmp_path: Path, operands: Shapes, results: Shapes) -> None:
    for others in (0, 20):
        found = ours(tmp_path, "i j, j k -> i k", operands, results, others)
        assert found == f"no rule: its shapes do not fit the rule in kernel.rules:{others + 1}"


def test_a_line_for_each_rank(tmp_path: Path) -> None:
    lines = "i -> i\n@kernel: i j -> i j need_replication={j}"
    assert ours(tmp_path, lines, [(4,)], [(4,)]) == "([i])->([i]) {i=4}"
    assert ours(tmp_path, lines, [(4, 2)], [(4, 2)]) == "([i, j])->([i, j]) {i=4, j=2} need_replication={j}"


def test_facts_stand_between_the_lines(tmp_path: Path) -> None:
    rules = tmp_path / "my.rules"
    rules.write_text(
        'elementwise_op("my.gelu").  // as tanh\n\nmy.mm: i k, k j -> i j reduction={k}\npure_op("my.mm").\n'
    )
    module = (
        'func.func @f(%a: tensor<4x4xf32>) {\n  %b = "my.gelu"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>\n'
    )
    module += '  %c = "my.mm"(%a, %b) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n  return\n}'
    book = RuleBook([rules])
    gelu, product = (c for c in file_cases(module, book) if c.name.startswith("my."))
    assert notation(gelu) == "([i, j])->([i, j]) {i=4, j=4}" and gelu.answers["elementwise"]
    assert notation(product).endswith("reduction={j}") and product.answers["pure"]
    assert Origins(book).first(gelu) == RuleOrigin(str(rules), 1, 'elementwise_op("my.gelu").')
    rules.write_text('// facts\nelementwize_op("my.gelu").\n')
    with pytest.raises(DatalogError, match=r"my.rules:2:1: error.*unknown relation"):
        RuleBook([rules])


def test_an_attached_rule_goes_first(tmp_path: Path) -> None:
    rules = tmp_path / "kernel.rules"
    rules.write_text("@kernel: i j -> i j\n")
    attached = "sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, k]) {i=4, j=2, k=2}, custom>"
    text = call([(4, 2)], [(4, 2)]).replace("{call", f"{{{attached}, call")
    (case,) = (c for c in file_cases(text, RuleBook([rules])) if c.name == "@kernel")
    assert notation(case) == "([i, j])->([i, k]) {i=4, j=2, k=2}"


def test_a_line_replaces_a_rule_of_shardlog(tmp_path: Path) -> None:
    rules = tmp_path / "tanh.rules"
    rules.write_text("stablehlo.tanh: i j -> i j need_replication={j}\n")
    text = "func.func @f(%0: tensor<4x2xf32>) {\n  %1 = stablehlo.tanh %0 : tensor<4x2xf32>\n  return\n}"
    (case,) = (c for c in file_cases(text, RuleBook([rules])) if c.name == "stablehlo.tanh")
    assert notation(case) == "([i, j])->([i, j]) {i=4, j=2} need_replication={j}"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("kernel i j -> i", "1:1", "expected a name and a colon"),
        ("@kernel: i j k", "1:15", "expected ->, found the end"),
        ("// one\n@kernel: i i -> i", "2:1", "factor i is used twice in one operand or result"),
        ("@kernel: i j -> i reduction={k}", "1:30", "no operand or result has a factor k"),
        ("@kernel: i j -> i reduction={i}", "1:1", "factor i is reduction, but a result has it"),
        ("@kernel: i j -> i sum={j}", "1:19", "unknown kind 'sum'"),
        ("@kernel: i j -> i reduction={j", "1:31", "expected }, found the end"),
        ("@kernel: i j -> i {j=0}", "1:22", "expected a size, found 0"),
        ("@kernel: (i j) -> i j reduction={i} permutation={i}", "1:50", "factor i is listed as reduction"),
        ("@kernel: (i j) k -> k", "1", "no dimension tells the size of factor i"),
        ("@kernel: ... i -> i ...", "1:21", "... means leading dimensions"),
        ("@kernel: i\n    + -> i", "2:5", "unexpected character '+'"),
        ("@kernel: i -> i\n@kernel: j -> j", "2:1", "kernel has another rule for these ranks, in line 1"),
        ("  i -> i", "1:1", "this line has no rule to continue"),
        ("@f: i -> i\n\n  reduction={}", "3:1", "this line has no rule to continue"),
        ("@f: i\n// or so\n  -> i", "1:6", "expected ->"),
    ],
)
def test_errors(tmp_path: Path, text: str, place: str, message: str) -> None:
    rules = tmp_path / "bad.rules"
    rules.write_text(text)
    with pytest.raises(ShardlogError) as caught:
        RuleBook([rules])
    assert str(caught.value).startswith(f"{rules}:{place}: error: {message}")


def test_packages_are_discovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with the entry point gives its rules to every run."""
    from shardlog.rulebook.discover import discovered

    package, metadata = tmp_path / "graph_rules", tmp_path / "graph_rules-1.0.dist-info"
    package.mkdir()
    metadata.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('the code of a rule package is not run')\n")
    (package / "ops.rules").write_text("graph.scale: i j, i -> i j\n")
    (package / "more.dl").write_text('pointwise_op("graph.copy").\n')
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: graph-rules\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[shardlog.rules]\ngraph = graph_rules\n")
    monkeypatch.syspath_prepend(tmp_path)
    discovered.cache_clear()
    try:
        result = run(
            """
            sdy.mesh @mesh = <["x"=2]>
            func.func @f(%a: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                         %b: tensor<4xf32>) -> tensor<4x2xf32> {
              %0 = "graph.scale"(%a, %b) : (tensor<4x2xf32>, tensor<4xf32>) -> tensor<4x2xf32>
              %1 = "graph.copy"(%0) : (tensor<4x2xf32>) -> tensor<4x2xf32>
              return %1 : tensor<4x2xf32>
            }
            """
        )
    finally:
        discovered.cache_clear()
    assert result.unknown_ops == ()
    assert '%arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}' in result.text()
    assert '-> (tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})' in result.text()


PIECES = [
    "@k:",
    "k:",
    " i",
    " j",
    " (",
    ")",
    ",",
    " ->",
    " ...",
    " ...1",
    " {",
    "}",
    "=",
    "4",
    "0",
    " reduction={",
]


@drawing(120)
@given(st.lists(st.sampled_from([*PIECES, " need_replication={", " blocked_propagation={", "\n", "//", "é"])))
def test_any_text_is_a_rule_or_an_error_with_a_place(pieces: list[str]) -> None:
    text = "@k: i " + "".join(pieces)
    try:
        compiled = compile_lines("any.rules", text)
    except ShardlogError as error:
        assert error.where.startswith("any.rules:")
    else:
        load([RULES / "ops/main.dl"], key="sig", texts={"any.rules": compiled}, include_from=[RULES])


@st.composite
def random_rules(draw: Any) -> tuple[str, str, dict[str, Any], Shapes, Shapes]:
    """A rule, what we write behind it, what JAX is told besides, and shapes that fit."""
    sizes = {name: draw(st.integers(1, 4)) for name in "abcdef"}
    batch = draw(st.lists(st.integers(1, 3), max_size=2))
    whole, seen = set(), dict[str, None]()
    texts, shapes = [], list[tuple[int, ...]]()
    for _ in range(draw(st.integers(2, 4))):
        names = draw(st.permutations("abcdef"))[: draw(st.integers(0, 4))]
        dims, shape = list[str](), list[int]()
        if draw(st.booleans()):
            dims, shape = ["..."], list(batch)
        while names:
            product, names = names[: draw(st.integers(1, 2))], names[1:]
            names = names[len(product) - 1 :]
            seen.update(dict.fromkeys(product))
            if len(product) == 1:
                whole.add(product[0])
            dims.append(product[0] if len(product) == 1 else f"({' '.join(product)})")
            shape.append(prod(sizes[f] for f in product))
        texts.append(" ".join(dims))
        shapes.append(tuple(shape))
    split = draw(st.integers(1, len(texts) - 1))
    given_sizes = {f: sizes[f] for f in seen if f not in whole}
    kinds = {f: draw(st.sampled_from(["", "reduction", "need_replication", "permutation"])) for f in seen}
    kept = {f for f in seen if any(f in text for text in texts[split:])}
    kinds |= {f: "" for f in kept if kinds[f] == "reduction"}  # which Shardy's verifier refuses
    listed = {k: tuple(f for f in seen if kinds[f] == k) for k in set(kinds.values()) - {""}}
    written = f"{{{', '.join(f'{f}={n}' for f, n in given_sizes.items())}}}" if given_sizes else ""
    written += "".join(f" {k}={{{', '.join(factors)}}}" for k, factors in listed.items())
    options = {**given_sizes, **{f"{k}_factors": factors for k, factors in listed.items()}}
    rule = f"{', '.join(texts[:split])} -> {', '.join(texts[split:])}"
    return rule, written, options, shapes[:split], shapes[split:]


@drawing(8)
@given(random_rules(), st.sampled_from([0, 20]))
def test_random_rules_are_like_jax(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: tuple[str, str, dict[str, Any], Shapes, Shapes],
    others: int,
) -> None:
    rule, written, options, operands, results = drawn
    found = ours(tmp_path_factory.mktemp("rules"), f"{rule} {written}", operands, results, others)
    assert found == theirs(rule, options, operands, results)


def test_the_rules_of_a_line_are_as_long_as_the_line() -> None:
    """Not each of them: their lengths would add up to its square."""

    def lengths(rank: int) -> int:
        dims = " ".join(f"i{d}" for d in range(100, 100 + rank))
        return len(compile_lines("wide.rules", f"my.op: {dims}, ... {dims} -> {dims} {{i100=4}}"))

    assert lengths(400) < 4.5 * lengths(100)


def test_lines_that_differ_in_their_names_alone_are_said_once() -> None:
    """Beyond that, each says its name, and what is said of ops that it does not fit."""

    def length(count: int) -> int:
        body = "b i j, b j k -> b i k reduction={j}"
        return len(compile_lines("many.rules", "".join(f"my.op{n}: {body}\n" for n in range(count))))

    assert length(1000) < 1000 * length(1) / 3
    assert length(2000) < 2.1 * length(1000)
