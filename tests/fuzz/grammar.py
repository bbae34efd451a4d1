"""Random programs of Datalog from a grammar: nearly right, so that they get far."""

from __future__ import annotations

import re
from random import Random

_DEEPEST = 12  # derivations in one another, after which the shortest choice is taken
# The choices for each word in angle brackets; the last one is the shortest.
_GRAMMAR = {
    "program": ["<decls><statements>"],
    "decls": ["<types><decl>\n<decl>\n<decl>\n", *["<known>"] * 9],
    "known": [
        ".type t <: number\n.type u = [x: number, y: u]\n.type v = A {x: number, y: v} | B {}\n"
        ".decl p(x: number, y: number)\n.decl q(x: symbol)\n.decl r(x: t) <quality>\n.decl s(x: u, y: v)\n"],
    "types": [".type <type> <: <type>\n<types>", ".type <type> = <type> | <type>\n<types>",
        ".type <type> = [<columns>]\n<types>", ".type <type> = <branch> | <branch>\n<types>", ""],
    "branch": ["<tag> {<columns>}", "<tag> {}"],
    "tag": ["A", "B", "C", "D"],
    "type": ["t", "u", "v", "number", "symbol", "unsigned", "float"],
    "columns": ["<column>: <type>, <columns>", "<column>: <type>"],
    "column": ["x", "y", "z", "w"],
    "decl": [".decl <relation>(<columns>) <quality>", ".decl p(x: number, y: number)",
        ".decl q(x: symbol)", ".decl d = debug_delta(<relation>)", ".decl s = debug_delta(<relation>)"],
    "quality": ["", "", "", "eqrel", "inline", "brie", "choice-domain <column>",
        "choice-domain (<column>, <column>)", "magic", "overridable", "printsize", ""],
    "relation": ["p", "q", "r", "s", "c.p", "c.q", "i", "l", "p"],
    "statements": ["<statement>\n<statements>", "<statement>\n<statements>", "<statement>\n"],
    "statement": ["<rule>", "<rule>", "<rule>", "<fact>", "<fact>", "<decl>", ".input <relation>",
        ".output <relation>", ".printsize <relation>", ".limitsize <relation>(n=<number>)", "<component>",
        ".init c = <tag><angle>", ".init <column> = <tag><angle>", ".override <relation>", "<types>",
        ".decl i(x: number, y: number) inline\ni(x, y) :- <body>.\ni(y, x) :- <literal>.",
        ".lattice <type><> {<bounds>}\n.decl l(x: number, y: <type><>)\nl(x, y) :- <body>.",
        ".plan 0:(1, 2)", ".pragma \"<column>\" \"<column>\"",
        ".pragma \"magic-transform\" \"*\"\n.output <relation>",
        "<macro>", "<atom> <= <atom> :- <body>.", ".functor f(x: number): number", ".include \"x.dl\"",
        "// <rule>", "/* <rule> */", "/// {x} <sentence>\n<rule>", "p(1, 2)."],
    "bounds": ["Lub -> <bound>(_, _), Glb -> <bound>(_, _), Bottom -> <number>", "Lub -> <bound>(_, _)"],
    "bound": ["max", "min", "bor", "band"],
    "sentence": ["{y} is {z}.", "is {"],
    "macro": ["#define <tag> <term>", "#define <tag>(x) <term>", "#define <tag>(x) x <tag>(x) # x",
        "#define <tag> <tag> <tag>", "#ifdef <tag>\n<rule>\n#endif",
        "#if <tag> > 1\n<rule>\n#else\n#endif", "#undef <tag>"],
    "component": [".comp <tag><angle> <bases>{\n<decl>\n<statements>}", ".comp <tag> { <decl> }"],
    "angle": ["<<type>>", "<<type>, <type>>", ""],
    "bases": [": <tag><angle> ", ": <tag>, <tag> ", ""],
    "fact": ["<atom>.", "p(<number>, <number>).", "q(<text>)."],
    "rule": ["p(x, z) :- p(x, y), p(y, z), <literal>.", "p(x, <term>) :- p(x, y), <literal>.",
        "q(<text>) :- <literal>.", "r(as(x, t)) :- p(x, _), <literal>.",
        "s([x, nil], $B()) :- p(x, y), <literal>.", "p(x, y) :- s([x, _], $A(y, _)).",
        "<atom> :- <body>.", "<atom>, <atom> :- <body>.", "<atom> :- <body>.\n.plan 1:(2, 1)",
        "p(x, y) :- p(y, x)."],
    "body": ["<literal>, <body>", "<literal>, <body>", "(<body> ; <body>)", "<literal>"],
    "literal": ["<atom>", "<atom>", "<atom>", "!<atom>", "<term> <compare> <term>", "!(<body>)",
        "match(<term>, <term>)", "contains(<term>, <term>)", "true", "p(x, y)"],
    "compare": ["=", "!=", "<", "<=", ">", ">="],
    "atom": ["<relation>(<terms>)", "p(<term>, <term>)", "q(<term>)", "p(x, y)"],
    "terms": ["<term>, <terms>", "<term>", ""],
    "term": ["<variable>", "<variable>", "<variable>", "<number>", "<text>", "<term> <operator> <term>",
        "(<term>)", "-<term>", "[<terms>]", "nil", "$<tag>(<terms>)", "$", "autoinc()",
        "recursive_iteration_cnt()",
        "as(<term>, <type>)", "<functor>(<terms>)", "<aggregate>", "bnot <term>", "@f(<term>)", "<tag>",
        "<tag>(<term>)",
        "_", "x"],
    "variable": ["x", "y", "z", "w", "x"],
    "operator": ["+", "-", "*", "/", "%", "^", "band", "bor", "bxor", "bshl", "bshr", "bshru", "land",
        "lor"],
    "functor": ["cat", "ord", "strlen", "substr", "range", "to_number", "to_string", "to_float",
        "to_unsigned", "max", "min", "itof", "ftoi", "lnot"],
    "aggregate": ["count : { <body> }", "sum <term> : { <body> }", "min <term> : <atom>",
        "max <term> : { <body> }", "mean <term> : { <body> }", "count : p(_, _)"],
    "number": ["0", "1", "2", "7", "-1", "0x1f", "0b101", "1u", "0.5", "1e3", "9223372036854775807",
        "18446744073709551616", "999999999999999999999999", "1.2.3.4", "00001", "3"],
    "text": ["\"a\"", "\"\"", "\"a\\\\n\"", "\"[a-z]*\"", "\"é\"", "\"\\\\", "\"12\""],
}  # fmt: skip
_WORD = re.compile(r"<(\w+)>")


def program(random: Random) -> str:
    """A program."""
    return _derived(random, "program", 0)


def _derived(random: Random, word: str, depth: int) -> str:
    choices = _GRAMMAR[word]
    chosen = choices[-1] if depth > _DEEPEST else random.choice(choices)

    def replaced(match: re.Match[str]) -> str:
        return _derived(random, match[1], depth + (word in _INNER)) if match[1] in _GRAMMAR else match[0]

    return _WORD.sub(replaced, chosen)


_INNER = frozenset(
    ["term", "body", "literal", "statement", "statements", "component", "columns", "types", "rule", "terms"]
)
