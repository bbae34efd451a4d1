"""A small C preprocessor: ``#define``, ``#undef``, ``#if`` and similar. Line numbers do not change.

``#include`` lines stay, for the parser; definitions of included files apply after them. Object-like and
function-like macros are expanded, with ``#`` and ``##``, outside of strings and comments. ``RAM_DOMAIN_SIZE``
is 64. ``#line`` gives the file and the line number of the next line, and so does ``# 1 "file"``, as C
preprocessors write it.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .sources import LineOrigin

_DIRECTIVE = re.compile(
    r"[ \t]*#[ \t]*(define|undef|ifdef|ifndef|if|elif|else|endif|include|line|pragma|error|(?=[0-9]))\b(.*)"
)
_ORIGIN = re.compile(r'([0-9]{1,9})[ \t]*(?:"((?:[^"\\]|\\.)*)"[ \t0-9]*)?')
_ORIGINS = re.compile(r"^[ \t]*#[ \t]*(?:line\b|[0-9]).*", re.MULTILINE)
_USES = re.compile(
    r"^[ \t]*#[ \t]*(?:[0-9]|(?:define|undef|if|ifdef|ifndef|elif|else|endif|error|include|line|pragma)\b)",
    re.MULTILINE,
)
_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"?|//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)|[A-Za-z_?][\w?]*|[0-9][\w.]*|\s+|##|.'
)
_COMMENT = re.compile(
    r'("(?:[^"\\]|\\.)*")|//.*|/\*.*?\*/'
)  # or a string, which may contain what looks like one
_NAME = re.compile(r"[A-Za-z_]\w*")
_DEEPEST = 100  # macros in one another, files in one another
_LARGEST = 32 << 20  # characters of an expanded text
_MACRO_CHARACTERS = 4 << 20  # characters that macros of a text stand for, also where nothing of these is left


@dataclass(frozen=True)
class Macro:
    """``parameters`` is None for an object-like macro. The last one of a ``variadic`` macro has all arguments
    from its own on."""

    parameters: tuple[str, ...] | None
    body: tuple[str, ...]
    variadic: bool = False

    def fitting(self, arguments: list[list[str]]) -> dict[str, list[str]] | None:
        """The tokens of each parameter; None where there are too few or too many arguments."""
        parameters = self.parameters or ()
        if self.variadic:
            own = len(parameters) - 1
            rest = [token for argument in arguments[own:] for token in (",", " ", *argument)][2:]
            arguments = [*arguments[:own], rest]
        if len(arguments) != len(parameters) and (parameters or arguments != [[]]):
            return None
        return dict(zip(parameters, arguments, strict=False))


def at_home(text: str) -> str:
    """A text without ``#line``: editors show messages where they stand in the file."""
    return _ORIGINS.sub("", text)


def uses_preprocessor(text: str) -> bool:
    """Whether a text has directives of the preprocessor."""
    return _USES.search(text) is not None


class PreprocessingError(Exception):
    """An error in a line."""


class Expanded(NamedTuple):
    """A text without directives and macros; errors by line (from 0); and the origin of its lines."""

    text: str
    errors: Sequence[tuple[int, str]] = ()
    origins: Sequence[LineOrigin] = ()


@dataclass
class Preprocessor:
    """Macros, as defined after the texts that were expanded. ``load(name, file)`` is the file that a file
    includes by this name, and its text; None if there is none."""

    load: Callable[[str, str], tuple[str, str] | None] = lambda name, file: None
    macros: dict[str, Macro] = field(default_factory=lambda: {"RAM_DOMAIN_SIZE": Macro(None, ("64",))})
    known: dict[str, Expanded] = field(default_factory=dict)
    depth: int = 0

    def define(self, name: str, body: str) -> None:
        """Let a name stand for a text."""
        self.macros[name] = Macro(None, tuple(_TOKEN.findall(body)))

    def expand(self, text: str, file: str) -> Expanded:
        """The text without directives and macros."""
        if file in self.known:
            return self.known.pop(file)
        if len(self.macros) == 1 and not uses_preprocessor(text):
            return Expanded(text)
        return _Expansion(self, text, file).result()

    def include(self, name: str, file: str) -> None:
        """Expand the file that ``file`` includes, for its definitions."""
        loaded = self.load(name, file) if self.depth < _DEEPEST else None
        if loaded is not None and loaded[0] not in self.known:
            self.depth += 1
            self.known[loaded[0]] = self.expand(loaded[1], loaded[0])
            self.depth -= 1


class _Expansion:
    def __init__(self, state: Preprocessor, text: str, file: str) -> None:
        self.state, self.file = state, file
        self.lines = text.split("\n")
        self.at = 0
        self.out: list[str] = []
        self.errors: list[tuple[int, str]] = []
        self.origins: list[LineOrigin] = []
        self.comment = False  # whether the line begins in a comment
        self.size = self.made = 0
        # For each #if around the line: whether the line counts so far, and whether any part of it did.
        self.parts: list[list[bool]] = []

    def result(self) -> Expanded:
        while self.at < len(self.lines):
            first, line = self.at, self.lines[self.at]
            self.at += 1
            directive = None if self.comment else _DIRECTIVE.match(line)
            try:
                if directive is None:
                    self.emit(first, self.expanded(line) if self.counts() else "")
                    continue
                rest = directive[2]
                while rest.endswith("\\") and self.at < len(self.lines):
                    rest = rest[:-1] + " " + self.lines[self.at]
                    self.at += 1
                kept = self.directive(directive[1], _COMMENT.sub(lambda m: m[1] or " ", rest).strip())
                self.emit(first, line if kept else "")
            except PreprocessingError as error:
                self.errors.append((first, str(error)))
                self.emit(first, "")
        if self.parts:
            self.errors.append((len(self.lines) - 1, "an `#if` is not closed with `#endif`"))
        return Expanded("\n".join(self.out), self.errors, self.origins)

    def counts(self) -> bool:
        """Whether the line counts."""
        return not self.parts or self.parts[-1][0]

    def emit(self, first: int, line: str) -> None:
        """Emit a line, and an empty line for each line that was joined to it."""
        self.size += len(line)
        if self.size > _LARGEST:
            raise PreprocessingError(f"the expanded text has more than {_LARGEST >> 20} MiB")
        self.out += [line] + [""] * (self.at - first - 1)

    def directive(self, name: str, rest: str) -> bool:
        """Carry out a directive; whether its line stays."""
        macros, parts = self.state.macros, self.parts
        counts = self.counts()
        if name in ("ifdef", "ifndef", "if"):
            parts.append([False, True])  # where the condition cannot be read
            holds = counts and ((rest in macros) == (name == "ifdef") if name != "if" else self.holds(rest))
            parts[-1] = [holds, holds]
        elif name in ("elif", "else", "endif"):
            if not parts:
                raise PreprocessingError(f"`#{name}` without `#if`")
            part = parts.pop()
            if name != "endif":
                outside = self.counts()
                parts.append([False, True])
                holds = outside and not part[1] and (name == "else" or self.holds(rest))
                parts[-1] = [holds, part[1] or holds]
        elif counts and name == "define":
            self.define(rest)
        elif counts and name == "undef":
            macros.pop(rest, None)
        elif counts and name == "error":
            raise PreprocessingError(f"#error {rest}")
        elif counts and name in ("line", ""):
            self.come_from(rest)
        elif counts and name == "include":
            if match := re.match(r'"([^"]*)"', rest):
                self.state.include(match[1], self.file)
            return True
        return False

    def come_from(self, rest: str) -> None:
        match = _ORIGIN.fullmatch(rest) or _ORIGIN.fullmatch(
            "".join(self.tokens(_TOKEN.findall(rest), frozenset()))
        )
        if match is None:
            raise PreprocessingError('expected a line, and a file in quotes, as in `#line 7 "rules.dl"`')
        file = None if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
        self.origins.append(LineOrigin(self.at, int(match[1]), file))

    def define(self, rest: str) -> None:
        name = _NAME.match(rest)
        if name is None:
            raise PreprocessingError("`#define` needs a name")
        body, parameters, variadic = rest[name.end() :], None, False
        if body.startswith("("):
            inside, closed, body = body[1:].partition(")")
            parameters = tuple(p.strip() for p in inside.split(",")) if inside.strip() else ()
            variadic = parameters[-1:] == ("...",)
            parameters = (*parameters[:-1], "__VA_ARGS__") if variadic else parameters
            if not closed or not all(_NAME.fullmatch(p) for p in parameters):
                raise PreprocessingError(f"the parameters of `{name[0]}` cannot be read")
        self.state.macros[name[0]] = Macro(parameters, tuple(_TOKEN.findall(body.strip())), variadic)

    def holds(self, condition: str) -> bool:
        condition = re.sub(
            r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))",
            lambda m: str(int((m[1] or m[2]) in self.state.macros)),
            condition,
        )
        return bool(_value("".join(self.tokens(_TOKEN.findall(condition), frozenset()))))

    def expanded(self, line: str) -> str:
        """A line with its macros expanded; takes later lines if a call continues there."""
        while True:
            start = "/*" if self.comment else ""
            tokens = _TOKEN.findall(start + line)
            last = tokens[-1] if tokens else ""
            self.comment = last.startswith("/*") and not (last.endswith("*/") and len(last) > 3)
            try:
                return "".join(self.tokens(tokens, frozenset()))[len(start) :]
            except _OpenCallError as error:
                if self.at >= len(self.lines) or self.comment:
                    return line
                self.comment = bool(start)
                parts, depth = [line], error.depth
                while depth > 0 and self.at < len(self.lines):
                    parts.append(self.lines[self.at])
                    depth += sum(map(_deeper, _TOKEN.findall(parts[-1])))
                    self.at += 1
                line = " ".join(parts)
                self.make(parts)

    def tokens(self, tokens: Iterable[str], hidden: frozenset[str], depth: int = 0) -> list[str]:
        if depth > _DEEPEST:
            raise PreprocessingError(f"macros are more than {_DEEPEST} levels deep")
        waiting, expanded = list(tokens), []
        if depth:
            self.make(waiting)
        i = 0
        while i < len(waiting):
            token = waiting[i]
            i += 1
            macro = None if token in hidden else self.state.macros.get(token)
            if macro is None:
                expanded.append(token)
                continue
            body: Iterable[str] = macro.body
            if macro.parameters is not None:
                after = i
                while after < len(waiting) and waiting[after].isspace():
                    after += 1
                if after == len(waiting) or waiting[after] != "(":
                    expanded.append(token)
                    continue
                arguments, i = _arguments(waiting, after)
                raw = macro.fitting(arguments)
                if raw is None:
                    least = (
                        f"at least {len(macro.parameters) - 1}" if macro.variadic else len(macro.parameters)
                    )
                    raise PreprocessingError(
                        f"the macro `{token}` takes {least} arguments, not {len(arguments)}"
                    )
                full = {name: self.tokens(tokens, hidden, depth + 1) for name, tokens in raw.items()}
                body = self.substituted(macro.body, raw, full)
            inside = hidden | {token}
            replacement = self.tokens(_pasted(body), inside, depth + 1)
            # The name of another macro at the end may have its arguments behind this one.
            name = (
                self.state.macros.get(replacement[-1])
                if replacement and replacement[-1] not in inside
                else None
            )
            if name is not None and name.parameters is not None:
                waiting.insert(i, replacement.pop())
            expanded += replacement
        return expanded

    def substituted(
        self, body: tuple[str, ...], raw: dict[str, list[str]], full: dict[str, list[str]]
    ) -> Iterator[str]:
        """The body of a macro with its arguments: as they stand where they are pasted, and else expanded."""
        for i, token in enumerate(body):
            if token == "#" and i + 1 < len(body) and body[i + 1] in raw:
                continue
            if token not in raw:
                yield token
            elif i and body[i - 1] == "#":
                text = "".join(raw[token]).replace("\\", "\\\\").replace('"', '\\"')
                self.make([text])
                yield f'"{text}"'
            else:
                pastes = _next_to(body, i, -1) == "##" or _next_to(body, i, 1) == "##"
                tokens = raw[token] if pastes else full[token]
                self.make(tokens)
                yield from tokens

    def make(self, tokens: Iterable[str]) -> None:
        """Count the expansion of a macro."""
        self.made += sum(map(len, tokens))
        if self.made > _MACRO_CHARACTERS:
            raise PreprocessingError(
                f"the macros of this text expand to more than {_MACRO_CHARACTERS >> 20} MiB"
            )


class _OpenCallError(PreprocessingError):
    """The arguments of a macro go on in the next line; ``depth`` is how many brackets are open."""

    def __init__(self, depth: int) -> None:
        super().__init__("the arguments of a macro are not closed")
        self.depth = depth


def _deeper(token: str) -> int:
    """How many brackets a token opens."""
    return (token in ("(", "[", "{")) - (token in (")", "]", "}"))


def _arguments(tokens: list[str], opening: int) -> tuple[list[list[str]], int]:
    """The arguments after an opening parenthesis, and the place after them."""
    depth, arguments = 1, [[]]  # type: tuple[int, list[list[str]]]
    for i in range(opening + 1, len(tokens)):
        token = tokens[i]
        depth += _deeper(token)
        if not depth:
            return [_stripped(argument) for argument in arguments], i + 1
        if token == "," and depth == 1:
            arguments.append([])
        else:
            arguments[-1].append(token)
    raise _OpenCallError(depth)


def _stripped(tokens: list[str]) -> list[str]:
    solid = [i for i, token in enumerate(tokens) if not token.isspace()]
    return tokens[solid[0] : solid[-1] + 1] if solid else []


def _next_to(tokens: tuple[str, ...], i: int, step: int) -> str:
    """The token before or after one, ignoring space."""
    i += step
    while 0 <= i < len(tokens) and tokens[i].isspace():
        i += step
    return tokens[i] if 0 <= i < len(tokens) else ""


def _pasted(tokens: Iterable[str]) -> list[str]:
    """The tokens with those around ``##`` joined."""
    groups: list[list[str]] = []
    joins = False
    for token in tokens:
        if token == "##":
            while groups and len(groups[-1]) == 1 and groups[-1][0].isspace():
                groups.pop()
            joins = True
        elif not joins or not groups:
            groups.append([token])
        elif not token.isspace():
            groups[-1].append(token)
            joins = False
    return [t for parts in groups for t in (parts if len(parts) == 1 else _TOKEN.findall("".join(parts)))]


_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.LShift: lambda a, b: a << min(b, 64), ast.RShift: lambda a, b: a >> min(b, 64),
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE:
    operator.ge, ast.Not: lambda a: not a, ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert:
    operator.invert,
}  # fmt: skip


def _value(condition: str) -> int:
    """The value of a condition in which every remaining name is 0."""
    condition = re.sub(r"\b(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]*\b", r"\1", condition)
    condition = re.sub(r"\b[A-Za-z_]\w*", "0", condition)
    condition = condition.replace("&&", " and ").replace("||", " or ").replace("/", "//")
    condition = re.sub(r"!(?!=)", " not ", condition)
    try:
        return int(_evaluated(ast.parse(condition.strip(), mode="eval").body))
    except (SyntaxError, ValueError, TypeError, ZeroDivisionError, RecursionError, MemoryError):
        raise PreprocessingError("this condition cannot be read") from None


def _evaluated(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BoolOp):
        values = [bool(_evaluated(value)) for value in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_evaluated(node.operand))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluated(node.left), _evaluated(node.right))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
        return _OPERATORS[type(node.ops[0])](_evaluated(node.left), _evaluated(node.comparators[0]))
    raise ValueError
