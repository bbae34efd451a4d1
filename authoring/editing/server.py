"""The language server: the protocol of editors over standard input and output."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from ...engine import DatalogError, EngineError
from ...engine.language.sources import line_and_column, line_starts
from ...errors import ShardlogError, from_extra
from ..formatting.files import format_text
from . import answers
from .answers import Occurrence, Proposal
from .names import Name
from .programs import MODULES, EditorProblem, Library

with from_extra("lsp", "pygls"):
    from lsprotocol import types as lsp
    from pygls import uris
    from pygls.exceptions import JsonRpcException
    from pygls.lsp.server import LanguageServer
    from pygls.workspace import PositionCodec, ServerTextPosition

_SECONDS = 0.2  # of silence before the text is checked
_REQUEST_FAILED = -32803  # the protocol's number
_WORD = re.compile(r"\w+|.")
_T = TypeVar("_T")
_KINDS = {
    "relation": lsp.CompletionItemKind.Function,
    "variable": lsp.CompletionItemKind.Variable,
    "factor": lsp.CompletionItemKind.Variable,
    "type": lsp.CompletionItemKind.Class,
    "keyword": lsp.CompletionItemKind.Keyword,
}
_SYMBOLS = {
    "relation": lsp.SymbolKind.Function,
    "type": lsp.SymbolKind.Class,
    "component": lsp.SymbolKind.Module,
    "instance": lsp.SymbolKind.Object,
    "branch": lsp.SymbolKind.EnumMember,
}


class RuleServer(LanguageServer):
    """The open files of the editor, and the translation of offsets to the units of the editor."""

    def __init__(self, version: str) -> None:
        super().__init__("shardlog", version)
        self.library = Library()
        self.changes: dict[Path, int] = {}  # how often each file changed

    @property
    def codec(self) -> PositionCodec:
        """Columns in the units of the editor, which need not be characters."""
        return self.workspace.position_codec

    def place(self, uri: str, position: lsp.Position) -> tuple[Path, int]:
        """A file, and the offset of a position in its text."""
        path = path_of(uri)
        lines, starts = _lines(self.library.text(path) or "")
        where = self.codec.position_from_client_units(lines, position)
        return path, starts[min(where.line, len(starts) - 1)] + where.character

    def range(self, text: str, start: int, end: int) -> lsp.Range:
        """The range from one offset up to another in a text."""
        lines, starts = _lines(text)

        def position(offset: int) -> lsp.Position:
            line, column = line_and_column(starts, offset)
            return self.codec.position_to_client_units(lines, ServerTextPosition(line - 1, column - 1))

        return lsp.Range(position(start), position(end))

    def of_name(self, path: Path, name: Name) -> lsp.Range:
        """Where a name is in a file."""
        return self.range(self.library.text(path) or "", name.start, name.end)

    def locations(self, spots: Sequence[Occurrence]) -> list[lsp.Location]:
        """The places of names."""
        return [lsp.Location(spot.path.as_uri(), self.of_name(spot.path, spot.name)) for spot in spots]

    def diagnostic(self, text: str, problem: EditorProblem) -> lsp.Diagnostic:
        """A problem, from its place up to the end of the word there."""
        lines, starts = _lines(text)
        line = min(problem.line, len(lines) - 1)
        content = lines[line].rstrip("\r\n")
        column, end = 0, len(content)
        if problem.column is not None:
            column = min(problem.column, len(content))
            word = _WORD.match(content, column)
            end = word.end() if word is not None else column
        start = starts[line]
        message = f"{problem.message}\n{problem.hint}" if problem.hint else problem.message
        return lsp.Diagnostic(
            self.range(text, start + column, start + end),
            message,
            lsp.DiagnosticSeverity.Warning if problem.code[:1] == "W" else lsp.DiagnosticSeverity.Error,
            problem.code or None,
            source="shardlog",
        )


def path_of(uri: str) -> Path:
    """The file of a URI. Unsaved files are in the current folder."""
    path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return Path(path or uri.replace(":", "_").replace("/", "_")).resolve()


@lru_cache(maxsize=256)
def _lines(text: str) -> tuple[list[str], list[int]]:
    """The lines of a text with their ends, and where they start."""
    starts = line_starts(text)
    return [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)], starts


def _asked(call: Callable[[], _T]) -> _T:
    """An answer. Errors in the question are shown to the user."""
    try:
        return call()
    except (ShardlogError, DatalogError) as error:
        message = error.message if isinstance(error, ShardlogError) else str(error)
        raise JsonRpcException(message, _REQUEST_FAILED) from None


def server(version: str) -> RuleServer:
    """A server, which is started by ``start_io``."""
    started = RuleServer(version)
    _add_documents(started)
    _add_questions(started)
    return started


def _add_documents(ls: RuleServer) -> None:
    """Adds the handlers that give the server the texts of the editor, and the editor their errors."""

    @ls.feature(lsp.INITIALIZED)
    def _initialized(params: lsp.InitializedParams) -> None:
        ls.library.folders = [path_of(uri) for uri in ls.workspace.folders]

    async def check(uri: str) -> None:
        path = path_of(uri)
        ls.library.opened[path] = ls.workspace.get_text_document(uri).source
        ls.changes[path] = change = ls.changes.get(path, 0) + 1
        await asyncio.sleep(_SECONDS)
        if ls.changes.get(path) == change:  # or it was changed again, or closed
            await publish(uri)

    async def publish(uri: str) -> None:
        """Publish the errors of a file, and of the open files in the same programs."""
        path = path_of(uri)
        loop = asyncio.get_running_loop()
        for other in list(ls.workspace.text_documents):
            file = path_of(other)
            change, text = ls.changes.get(file), ls.library.opened.get(file)
            if text is None or not (file == path or await loop.run_in_executor(None, _meet, ls, path, file)):
                continue
            problems = await loop.run_in_executor(None, _problems, ls, file, text)
            if ls.changes.get(file) == change:  # or it is being checked again
                shown = [ls.diagnostic(text, problem) for problem in problems]
                ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(other, shown))

    @ls.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def _opened(params: lsp.DidOpenTextDocumentParams) -> None:
        await check(params.text_document.uri)

    @ls.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def _changed(params: lsp.DidChangeTextDocumentParams) -> None:
        await check(params.text_document.uri)

    @ls.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def _saved(params: lsp.DidSaveTextDocumentParams) -> None:
        await check(params.text_document.uri)

    @ls.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def _closed(params: lsp.DidCloseTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        ls.library.opened.pop(path, None)
        ls.changes.pop(path, None)
        ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))
        await publish(params.text_document.uri)  # other files see the version on disk now


def _problems(ls: RuleServer, path: Path, text: str) -> list[EditorProblem]:
    """The errors of a file."""
    if path.suffix not in MODULES:
        return ls.library.problems(path)
    from .modules import problems  # MLIR and all that a run takes, for those who open a module

    return problems(path, text)


def _meet(ls: RuleServer, path: Path, other: Path) -> bool:
    """Whether two files are of one program."""
    if path.suffix in MODULES or other.suffix in MODULES:
        return path == other
    return path in ls.library.files(other) or other in ls.library.files(path)


def _add_questions(ls: RuleServer) -> None:
    """Adds the handlers of the editor's questions."""

    @ls.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def _definition(params: lsp.DefinitionParams) -> list[lsp.Location]:
        place = ls.place(params.text_document.uri, params.position)
        return ls.locations(answers.definitions(ls.library, *place))

    @ls.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def _references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        spots = answers.spots(ls.library, *ls.place(params.text_document.uri, params.position))
        wanted = [spot for spot in spots if params.context.include_declaration or not spot.name.declares]
        return ls.locations(wanted)

    @ls.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def _hover(params: lsp.HoverParams) -> lsp.Hover | None:
        path, offset = ls.place(params.text_document.uri, params.position)
        if path.suffix in MODULES:
            return await asyncio.get_running_loop().run_in_executor(None, _of_module, ls, path, offset)
        answer = answers.hover(ls.library, path, offset)
        if answer is None:
            return None
        name, text = answer
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), ls.of_name(path, name))

    @ls.feature(lsp.TEXT_DOCUMENT_RENAME)
    def _rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        path, offset = ls.place(params.text_document.uri, params.position)
        edits: dict[str, list[lsp.TextEdit]] = {}
        for spot in _asked(lambda: answers.renamed(ls.library, path, offset, params.new_name)):
            edit = lsp.TextEdit(ls.of_name(spot.path, spot.name), params.new_name)
            edits.setdefault(spot.path.as_uri(), []).append(edit)
        return lsp.WorkspaceEdit(changes=edits)

    @ls.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", ":"]))
    def _completion(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        place = ls.place(params.text_document.uri, params.position)
        return [_item(proposal) for proposal in answers.proposals(ls.library, *place)]

    @ls.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def _symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        path = path_of(params.text_document.uri)
        symbols = []
        for declaration in answers.names_in(ls.library, path).declarations:
            name = declaration.name
            where = ls.of_name(path, name)
            symbols.append(lsp.DocumentSymbol(name.text, _SYMBOLS[name.kind], where, where, declaration.text))
        return symbols

    @ls.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def _formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        path = path_of(params.text_document.uri)
        text = ls.library.text(path) or ""
        if path.suffix in MODULES:
            return []
        new_text = _asked(lambda: format_text(text, str(path)))
        return [lsp.TextEdit(ls.range(text, 0, len(text)), new_text)] if new_text != text else []


def _of_module(ls: RuleServer, path: Path, offset: int) -> lsp.Hover | None:
    """The text about the value at a place in a module, or the error if the module cannot be run."""
    from .modules import hover

    text = ls.library.text(path) or ""
    try:
        answer = hover(path, text, offset)
    except (ShardlogError, DatalogError, EngineError) as error:
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.PlainText, str(error)))
    if answer is None:
        return None
    start, end, markdown = answer
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, markdown), ls.range(text, start, end))


def _item(proposal: Proposal) -> lsp.CompletionItem:
    comment = lsp.MarkupContent(lsp.MarkupKind.Markdown, proposal.comment) if proposal.comment else None
    return lsp.CompletionItem(
        proposal.word, kind=_KINDS[proposal.kind], detail=proposal.detail or None, documentation=comment
    )
