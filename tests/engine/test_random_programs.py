"""Random small programs: core agrees with the reference, and the order of the text does not matter.

``python -m shardlog.tests.engine.test_random_programs 5000`` tries so many, also with Soufflé, where it is
installed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardlog.engine import LoadedProgram, load

from ..support import tools
from ..support.drawing import drawing

# Relations by layer: a rule reads its own layer and those before it; under negations and in aggregates only
# those before it.
LAYERS = [
    {"e": "nn", "s": "ns", "v": "n"},
    {"p": "nn", "q": "n", "same": "nn"},
    {"r": "nns", "t": "n", "z": ""},
    {"u": "nn", "w": "ns"},
    {"x": "nn", "y": "n"},
]
# What is made of the layers before the last by other parts of the language. Rules of the last layer read it
# too.
FEATURES = {
    "inlined": "nn", "taken": "nn", "least": "nn", "numbered": "nn", "best": "nn", "leaves": "nn",
    "one.kept": "nn", "two.kept": "nn", "two.inner.kept": "nn",
}  # fmt: skip
LANGUAGE = """
.decl near(a:number, b:number) inline
near(a, b) :- b = a + 1.
near(a, b) :- q(b), a = b * 2.
.decl inlined(a:number, b:number)
inlined(a, b) :- u(a, b), near(a, b).
inlined(a, b) :- q(a), t(b), !near(b, a).
.decl taken(a:number, b:number) choice-domain a, (b)
taken(a, b) :- p(a, b).
taken(b, c) :- taken(a, b), u(c, a).
.decl least(a:number, b:number) btree_delete
least(a, b) :- u(a, b).
least(a, c) :- least(a, b), p(b, c).
least(a, b) <= least(a, c) :- c < b.
.decl numbered(n:number, a:number)
numbered($, a) :- q(a), !t(a + 1).
.decl best(a:number, m:number)
best(a, m) :- m = max b : { u(a, b) }.
best(a, m) :- t(m), a = min b : { p(b, m) }.
.type Tree = Leaf {n:number} | Node {left:Tree, right:Tree, name:symbol}
.decl tree(t:Tree)
tree($Leaf(a)) :- q(a).
tree($Node(l, $Leaf(b), x)) :- tree(l), l = $Leaf(a), r(a, b, x).
.decl leaves(a:number, b:number)
leaves(a, b) :- tree($Node($Leaf(a), $Leaf(b), _)).
leaves(n, -1) :- n = count : { tree($Leaf(_)) }.
.comp Base { .decl kept(a:number, b:number) overridable kept(a, b) :- p(a, b). }
.comp Derived : Base { .override kept kept(a, b) :- u(b, a). .init inner = Base inner.kept(b, a) :- kept(a,
b). } .init one = Base
.init two = Derived
"""
# What depends on the order in which symbols appear.
APPEARING = {"place": "sn", "earlier": "ss", "first": "sn"}
ORDINALS = """
.decl place(x:symbol, n:number)
place(x, ord(x)) :- w(_, x).
.decl earlier(x:symbol, y:symbol)
earlier(x, y) :- w(_, x), r(_, _, y), ord(x) < ord(y).
.decl first(x:symbol, n:number) choice-domain x, n
first(x, n) :- w(n, x).
first(y, n) :- first(x, _), earlier(x, y), w(n, _).
"""
TYPES = {"n": "number", "s": "symbol"}
DECLARATIONS = (
    "\n".join(
        f".decl {name}({', '.join(f'c{i}:{TYPES[c]}' for i, c in enumerate(columns))}) "
        + ("eqrel" if name == "same" else "")
        for layer in LAYERS
        for name, columns in layer.items()
    )
    + LANGUAGE
    + ORDINALS
)
# Something in every relation, so that random rules find something.
BASE = """
p(a, b) :- e(a, b), a < b.
q(a) :- v(a).
same(a, b) :- e(a, b), b < 2.
r(a, b, x) :- e(a, b), s(b, x).
t(a) :- v(a), a != 1.
z() :- v(2).
u(a, b) :- p(b, a).
w(a, x) :- s(a, x).
x(a, b) :- taken(a, b), !least(a, b).
y(a) :- leaves(a, _), numbered(_, a).
"""
VARIABLES = {"n": ["a", "b", "c", "d"], "s": ["x", "y"]}
CONSTANTS = {"n": st.integers(-2, 4).map(str), "s": st.sampled_from(['"k"', '"l"', '""'])}
NAMES = [*(name for layer in LAYERS for name in layer), *FEATURES]
EVERYTHING = [*NAMES, *APPEARING]


@dataclass(frozen=True)
class Rule:
    head: str
    body: tuple[str, ...]

    def text(self, random: Random | None = None) -> str:
        body = list(self.body)
        if random is not None:
            random.shuffle(body)
        return f"{self.head} :- {', '.join(body)}."


class _Drawn:
    """Draws the parts of a rule. ``readable`` are the relations that its body may have, ``below`` those of
    lower strata, with the kinds of their columns; ``known`` the variables that have a value, by kind."""

    def __init__(self, draw: st.DrawFn, readable: dict[str, str], below: dict[str, str]) -> None:
        self.draw, self.readable, self.below = draw, readable, below
        self.known: dict[str, set[str]] = {"n": set(), "s": set()}

    def atom(self, relations: dict[str, str], inside: bool = False) -> str:
        """A positive atom; its variables are known from now on."""
        name = self.draw(st.sampled_from(sorted(relations)))
        args = []
        for column in relations[name]:
            kind = self.draw(st.sampled_from(["variable"] * 5 + ["constant", "_"]))
            variable = self.draw(st.sampled_from(VARIABLES[column])) + ("1" if inside else "")
            if kind == "variable":
                self.known[column].add(variable)
            args.append({"variable": variable, "_": "_"}.get(kind) or self.draw(CONSTANTS[column]))
        return f"{name}({', '.join(args)})"

    def value(self, column: str, compound: bool = True) -> str:
        """A term of known variables."""
        plain = (
            self.draw(st.sampled_from(sorted(self.known[column])))
            if self.known[column]
            else self.draw(CONSTANTS[column])
        )
        if not compound or self.draw(st.booleans()):
            return plain
        if column == "s":
            return f'substr(cat({plain}, "k"), 0, 2)'
        other = self.value("n", compound=False)
        return self.draw(
            st.sampled_from(
                [f"({plain} + {other}) % 5", f"{plain} * 2 % 7", f"min({plain}, 3)", f"{plain} band {other}"]
            )
        )

    def literal(self) -> str:
        kind = self.draw(
            st.sampled_from(["atom", "atom", "test", "absent", "let", "aggregate", "range", "either"])
        )
        if kind == "atom":
            return self.atom(self.readable)
        if kind == "test":
            column = self.draw(st.sampled_from("ns"))
            left, operator = self.value(column), self.draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
            return f"{left} {operator} {self.value(column)}"
        if kind == "absent":
            name = self.draw(st.sampled_from(sorted(self.below)))
            args = [self.draw(st.sampled_from(["_", self.value(column)])) for column in self.below[name]]
            return f"!{name}({', '.join(args)})"
        if kind == "either":
            return f"({self.value('n')} < {self.value('n')} ; {self.value('s')} = {self.value('s')})"
        new = self.draw(st.sampled_from(VARIABLES["n"]))
        if kind == "let":
            term = self.value("n")
        elif kind == "range":
            term = f"range(0, min({self.value('n')}, 4))"
        else:
            term = self.aggregate()
        self.known["n"].add(new)
        return f"{new} = {term}"

    def aggregate(self) -> str:
        outside = {column: set(names) for column, names in self.known.items()}
        body = ", ".join(self.atom(self.below, inside=True) for _ in range(self.draw(st.integers(1, 2))))
        if self.draw(st.booleans()):
            body += f", {self.value('n')} <= {self.value('n')}"
        function = self.draw(st.sampled_from(["count", "sum", "min", "max"]))
        self.known["n"] -= outside["n"]  # the target has variables of its own
        target = "" if function == "count" else f" ({self.value('n')})"
        self.known.update(outside)
        return f"{function}{target} : {{ {body} }}"


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    level = draw(st.integers(1, len(LAYERS) - 1))
    below = {name: columns for layer in LAYERS[:level] for name, columns in layer.items()}
    if level == len(LAYERS) - 1:
        below |= FEATURES
    drawn = _Drawn(draw, below | LAYERS[level], below)
    body = [drawn.atom(drawn.readable)] + [drawn.literal() for _ in range(draw(st.integers(0, 3)))]
    name = draw(st.sampled_from(sorted(LAYERS[level])))
    head = f"{name}({', '.join(drawn.value(column) for column in LAYERS[level][name])})"
    return Rule(head, tuple(body))


@st.composite
def facts(draw: st.DrawFn) -> dict[str, list[tuple[Any, ...]]]:
    values = {"n": st.integers(-1, 4), "s": st.sampled_from(["k", "l", "kl", "kk"])}
    return {
        name: draw(st.lists(st.tuples(*(values[c] for c in columns)), min_size=2, max_size=8))
        for name, columns in LAYERS[0].items()
    }


def program(found: list[Rule], random: Random | None = None) -> LoadedProgram:
    return load(texts={"random.dl": text_of(found, random)})


def text_of(found: list[Rule], random: Random | None = None) -> str:
    found = list(found)
    if random is not None:
        random.shuffle(found)
    return "\n".join([DECLARATIONS, BASE, *(rule.text(random) for rule in found)])


@pytest.mark.core
@given(st.lists(rules(), min_size=1, max_size=8), facts())
@drawing(40)
def test_core_is_the_reference(found: list[Rule], given_facts: dict[str, list[tuple[Any, ...]]]) -> None:
    check_evaluators_agree(found, given_facts)


def check_evaluators_agree(found: list[Rule], given_facts: dict[str, list[tuple[Any, ...]]]) -> None:
    """Both evaluators give the same for a program."""
    loaded = program(found)
    reference = loaded.evaluate(given_facts, EVERYTHING, "reference")
    assert loaded.evaluate(given_facts, EVERYTHING, "core") == reference


@pytest.mark.core
@pytest.mark.souffle
def test_souffle_agrees() -> None:
    tried, compared = check_programs(50)
    assert compared > tried / 4


def _loses_solutions(rule: Rule) -> bool:
    layer = next(layer for layer in LAYERS if rule.head.split("(")[0] in layer)
    recursive = any(literal.split("(")[0] in layer for literal in rule.body)
    return recursive and any(re.search(r"{.*\b[abcdxy]\b", literal) for literal in rule.body)


def check_souffle_agrees(found: list[Rule], given_facts: dict[str, list[tuple[Any, ...]]]) -> bool:
    """Soufflé gives what both evaluators give, but for what it chooses and numbers in an order of its own.
    False where it does not: it refuses aggregates that depend on each other, aborts at some rules with ranges
    in a circle, and loses solutions of recursive rules with aggregates that use a variable of the rule."""
    if any(map(_loses_solutions, found)):
        return False
    answers = program(found).evaluate(given_facts, NAMES)
    # Soufflé aborts at a branch in an aggregate.
    lines = [".decl leaf(n:number)", "leaf(n) :- tree($Leaf(n))."]
    lines.append(text_of(found).replace("{ tree($Leaf(_)) }", "{ leaf(_) }"))
    for name, rows in given_facts.items():
        lines += [f"{name}({', '.join(json.dumps(value) for value in row)})." for row in rows]
    names = [name for name in NAMES if name not in {"taken", "numbered", *LAYERS[-1]}]
    lines += [f".output {name}" for name in names]
    with TemporaryDirectory() as folder:
        source = Path(folder, "program.dl")
        source.write_text("\n".join(lines))
        done = subprocess.run([str(tools.souffle()), "-w", "-D", folder, source], capture_output=True)
        if done.returncode:
            return False
        for name in names:
            written = Path(folder, f"{name}.csv").read_text().splitlines()
            ours = {"\t".join(map(str, row)) if row else "()" for row in answers[name]}
            assert set(written) == ours, name
    return True


@given(st.lists(rules(), min_size=1, max_size=8), facts(), st.randoms(use_true_random=False))
@drawing(20)
def test_order_of_text_does_not_matter(
    found: list[Rule], given_facts: dict[str, list[tuple[Any, ...]]], random: Random
) -> None:
    answers = program(found).evaluate(given_facts, NAMES, "reference")
    assert program(found, random).evaluate(given_facts, NAMES, "reference") == answers


def check_programs(count: int) -> tuple[int, int]:
    """Tries so many programs; returns how many there were, and how many Soufflé was compared on."""
    tried = compared = 0

    @settings(deadline=None, max_examples=count)
    @given(st.lists(rules(), min_size=1, max_size=8), facts())
    def agrees(found: list[Rule], given_facts: dict[str, list[tuple[Any, ...]]]) -> None:
        nonlocal tried, compared
        check_evaluators_agree(found, given_facts)
        tried += 1
        compared += bool(tools.souffle()) and check_souffle_agrees(found, given_facts)

    agrees()
    return tried, compared


if __name__ == "__main__":
    tried, compared = check_programs(int(sys.argv[1]))
    print(f"{tried} programs: core and reference agree; {compared} of them: Soufflé, too")
