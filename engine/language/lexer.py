"""Text to tokens, with one regular expression.

A token's kind is "identifier", "number", "unsigned", "float", "string" or "end"; keywords, directives and
punctuation are their own kind. Doc comments (``///``) are not tokens: they are kept by the token after them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .diagnostics import Reporter

DIRECTIVES = (
    "comp", "decl", "functor", "include", "init", "input", "lattice", "limitsize", "number_type",
    "once", "output", "override", "plan", "pragma", "printsize", "symbol_type", "type",
)  # fmt: skip

# Reserved, so that Soufflé accepts all programs that are accepted here.
KEYWORDS = frozenset(
    [
        "_", "as", "autoinc", "band", "bnot", "bor", "brie", "bshl", "bshr", "bshru", "btree", "btree_delete",
        "bxor", "cat", "choice-domain", "contains", "count", "debug_delta", "eqrel", "false", "inline",
        "input", "land", "lnot", "lor", "lxor", "magic", "match", "max", "mean", "min", "nil", "no_inline",
        "no_magic",
        "ord", "output", "overridable", "printsize", "range", "recursive_iteration_cnt", "stateful", "strlen",
        "substr", "sum", "to_float", "to_number", "to_string", "to_unsigned", "true",
    ]
)  # fmt: skip

_TOKEN = re.compile(
    r"""
    (?: \s+ | //(?!!|/(?!/))[^\n]* | /\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/ )*+
    (?: (?P<identifier> choice-domain | [A-Za-z_?][A-Za-z0-9_?]* )
      | (?P<directive> \.(?:DIRECTIVE)\b )
      | (?P<doc> //(?:!|/(?!/))[^\n]* )
      | (?P<unclosed> /\*[\s\S]* )
      | (?P<punctuation> :- | <= | >= | != | <: | -> | :: | @! | [()\[\]{},.;:=<>!*/%^+\-|@$] )
      | (?P<string> "[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"? )
      | (?P<address> [0-9]+\.[0-9]+\.[0-9]+\.[0-9]+ )
      | (?P<float> [0-9]+\.[0-9]+ )
      | (?P<unsigned> (?:0b[01]+|0x[0-9A-Fa-f]+|[0-9]+)u )
      | (?P<number> 0b[01]+ | 0x[0-9A-Fa-f]+ | [0-9]+ )
      | (?P<include> \#[ \t]*include\b )
      | (?P<end> \Z )
      | (?P<other> . )
    )""".replace("DIRECTIVE", "|".join(DIRECTIVES)),
    re.VERBOSE,
)

_HALF = re.compile("[\ud800-\udfff]")  # which texts in Python may hold, and no file
ESCAPES = {
    '"': '"', "'": "'", "\\": "\\",
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip


@dataclass
class Tokens:
    """Parallel lists; the last two tokens are "end". ``sentences``: doc comment by index of the token;
    ``comments``: where its lines start."""

    kinds: list[str]
    texts: list[str]
    places: list[int]
    sentences: dict[int, str]
    comments: dict[int, list[int]] = field(default_factory=dict)


def token_at(text: str, at: int) -> tuple[int, int]:
    """Where the first token from a place in a text on begins and ends."""
    match = _TOKEN.match(text, at)
    assert match is not None and match.lastgroup
    return match.span(match.lastgroup)


def tokenize(text: str, start: int, reporter: Reporter, *, as_written: bool = False) -> Tokens:
    """The tokens of a text whose first character has position ``start``; ``as_written``: with annotations,
    and with ``__LINE__`` as a name."""
    kinds: list[str] = []
    texts: list[str] = []
    places: list[int] = []
    sentences: dict[int, list[str]] = {}
    comments: dict[int, list[int]] = {}
    add_kind, add_text, add_place, keywords = kinds.append, texts.append, places.append, KEYWORDS
    if not text.isascii() and (half := _HALF.search(text)):
        reporter.error("E0101", start + half.start(), "half of a character")
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        assert kind is not None
        word = match[kind]
        if kind == "identifier":
            if word in ("__LINE__", "__FILE__") and not as_written:
                at = start + match.start(kind)
                place, is_line = reporter.place(at), word == "__LINE__"
                file = place.file.replace("\\", "\\\\").replace('"', '\\"')
                (
                    add_kind("number" if is_line else "string"),
                    add_text(str(place.line) if is_line else f'"{file}"'),
                )
                add_place(at)
                continue
            add_kind(word if word in keywords else kind)
        elif kind == "punctuation" or kind == "directive":
            add_kind(word)
        elif kind == "doc":
            sentences.setdefault(len(kinds), []).append(word[3:].strip())
            comments.setdefault(len(kinds), []).append(start + match.start(kind))
            continue
        elif kind == "include":
            add_kind(".include")
        elif kind == "unclosed":
            reporter.error(
                "E0101", start + match.start(kind), "this comment is not closed", "close it with */"
            )
            continue
        elif kind == "other":
            reporter.error("E0101", start + match.start(kind), f"unexpected character `{word}`")
            continue
        else:
            add_kind(kind)
        add_text(word)
        add_place(start + match.start(kind))
    add_kind(kinds[-1]), add_text(texts[-1]), add_place(places[-1])
    joined = {index: " ".join(lines) for index, lines in sentences.items()}
    tokens = Tokens(kinds, texts, places, joined, comments)
    return tokens if as_written or not ("@" in kinds or "@!" in kinds) else _without_annotations(tokens)


def _without_annotations(tokens: Tokens) -> Tokens:
    """The tokens without annotations such as ``@[name = value]``, which are ignored here."""
    kept: list[int] = []
    kinds, i = tokens.kinds, 0
    while i < len(kinds):
        if kinds[i] in ("@", "@!") and kinds[i + 1] == "[":
            depth, i = 1, i + 2
            while depth and kinds[i] != "end":
                depth += (kinds[i] in "([{") - (kinds[i] in ")]}")
                i += 1
        else:
            kept.append(i)
            i += 1
    new = {old: index for index, old in enumerate(kept)}
    sentences = {new[i]: sentence for i, sentence in tokens.sentences.items() if i in new}
    comments = {new[i]: places for i, places in tokens.comments.items() if i in new}
    texts, places = [tokens.texts[i] for i in kept], [tokens.places[i] for i in kept]
    return Tokens([kinds[i] for i in kept], texts, places, sentences, comments)


def unescape(literal: str, at: int, reporter: Reporter) -> str:
    """The value of a string literal with its quotes."""
    if literal[-1] != '"' or len(literal) == 1:
        reporter.error("E0101", at, "this string is not closed", 'close it with " on the same line')
    body = literal[1:].removesuffix('"')
    if "\\" not in body:
        return body

    def replace(match: re.Match[str]) -> str:
        if match[1] not in ESCAPES:
            reporter.error(
                "E0102",
                at + 1 + match.start(),
                f"unknown escape sequence `\\{match[1]}`",
                "write \\\\ for a backslash; known are \\\" \\' \\\\ \\a \\b \\f \\n \\r \\t \\v",
            )
        return ESCAPES.get(match[1], "")

    return re.sub(r"\\(.)", replace, body, flags=re.DOTALL)
