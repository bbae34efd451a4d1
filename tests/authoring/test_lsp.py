"""``shardlog lsp``, asked by a client over standard input and output."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient
from shardlog.rulebook.shipped import RULES

MAIN = """.include "edges.dl"

.decl path(from: node, to: node)                            // there is a way
/// {a} leads to {b}.
path(a, b) :- edge(a, b).
path(a, c) :- path(a, b), edge(b, c).
.output path
"""
EDGES = """.type node <: number  // a place of the graph
.decl edge(from: node, to: node)  // one step
edge(1, 2).
"""


class Editor:
    """A client with the files of a folder."""

    def __init__(self, client: Any, folder: Path) -> None:
        self.client, self.folder = client, folder
        self.texts: dict[str, str] = {}
        self.told: dict[str, list[lsp.Diagnostic]] = {}
        self.messages: list[str] = []  # that are shown to the user
        self.event = asyncio.Event()

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str) -> None:
        self.texts[name] = text
        item = lsp.TextDocumentItem(self.uri(name), "datalog", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def change(self, name: str, text: str) -> None:
        self.texts[name] = text
        document = lsp.VersionedTextDocumentIdentifier(2, self.uri(name))
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))

    def close(self, name: str) -> None:
        document = lsp.TextDocumentIdentifier(self.uri(name))
        self.client.text_document_did_close(lsp.DidCloseTextDocumentParams(document))

    def at(self, name: str, text: str, into: int = 0) -> dict[str, Any]:
        """The document, and the position of a text in it."""
        before = self.texts[name][: self.texts[name].index(text) + into]
        line = before.count("\n")
        units = len(before[before.rfind("\n") + 1 :].encode("utf-16-le")) // 2
        position = lsp.Position(line, units)
        return {"text_document": lsp.TextDocumentIdentifier(self.uri(name)), "position": position}

    async def errors(self, name: str) -> list[tuple[int, int, int, str]]:
        """What the server tells of a file next: (line, column, end, message)."""
        while self.uri(name) not in self.told:
            self.event.clear()
            await asyncio.wait_for(self.event.wait(), 60)
        return [
            (d.range.start.line, d.range.start.character, d.range.end.character, d.message.split("\n")[0])
            for d in self.told.pop(self.uri(name))
        ]

    def shown(self, locations: Any) -> list[tuple[str, int, str]]:
        """Places as (file, line, what stands there)."""
        found = []
        for location in locations:
            name, start, end = location.uri.rsplit("/", 1)[1], location.range.start, location.range.end
            line = self.texts[name].split("\n")[start.line] if name in self.texts else ""
            found.append((name, start.line, line[start.character : end.character]))
        return found


def talk(folder: Path, conversation: Callable[[Editor], Awaitable[None]]) -> None:
    """Starts a server, and ends it when all is said."""

    async def run() -> None:
        client: Any = LanguageClient("test", "1")
        await client.start_io(sys.executable, "-m", "shardlog", "lsp")
        editor = Editor(client, folder)

        def told(params: lsp.PublishDiagnosticsParams) -> None:
            editor.told[params.uri] = list(params.diagnostics)
            editor.event.set()

        def shown(params: lsp.ShowMessageParams) -> None:
            editor.messages.append(params.message)

        client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(told)
        client.feature(lsp.WINDOW_SHOW_MESSAGE)(shown)
        folders = [lsp.WorkspaceFolder(folder.as_uri(), "rules")]
        capabilities = lsp.ClientCapabilities()
        await client.initialize_async(
            lsp.InitializeParams(capabilities=capabilities, workspace_folders=folders)
        )
        client.initialized(lsp.InitializedParams())
        await conversation(editor)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()

    asyncio.run(asyncio.wait_for(run(), 120))


def test_errors_while_typing(tmp_path: Path) -> None:
    (tmp_path / "edges.dl").write_text(EDGES)

    async def conversation(editor: Editor) -> None:
        editor.open("main.dl", MAIN)
        assert await editor.errors("main.dl") == []
        # Columns are those of the editor, in which a character may count as two.
        wrong = MAIN.replace("edge(b, c)", '"\N{GRINNING FACE}" != "", egde(b, c)').replace(
            "edge(a, b)", "edge(a, _)"
        )
        editor.change("main.dl", wrong)
        assert await editor.errors("main.dl") == [
            (4, 8, 9, "the variable `b` has no value: no positive atom of the body holds it"),
            (5, 38, 42, "unknown relation `egde`"),
        ]
        editor.change("main.dl", MAIN)
        assert await editor.errors("main.dl") == []

    talk(tmp_path, conversation)


def test_warnings_are_no_errors(tmp_path: Path) -> None:
    async def conversation(editor: Editor) -> None:
        editor.open("main.dl", ".decl a(x: number)\na(x) :- x = y.\n.decl b()\n")
        while not editor.told:
            editor.event.clear()
            await asyncio.wait_for(editor.event.wait(), 60)
        (told,) = editor.told.values()
        error, warning = lsp.DiagnosticSeverity.Error, lsp.DiagnosticSeverity.Warning
        assert [(d.code, d.severity) for d in told] == [
            ("E0401", error), ("E0401", error), ("W0403", warning), ("W0401", warning)
        ]  # fmt: skip

    talk(tmp_path, conversation)


def test_a_file_is_checked_as_a_part_of_the_program_that_includes_it(tmp_path: Path) -> None:
    (tmp_path / "main.dl").write_text(MAIN)

    async def conversation(editor: Editor) -> None:
        editor.open("edges.dl", EDGES + "edge(a, b) :- path(a, b).\n")
        assert await editor.errors("edges.dl") == []
        # What is not saved counts in the files that include it.
        editor.open("main.dl", MAIN)
        assert await editor.errors("main.dl") == []
        editor.told.clear()
        editor.change("edges.dl", EDGES.replace("to: node", "to: node, length: number"))
        assert (2, 0, 4, "`edge` has 3 columns, not 2") in await editor.errors("edges.dl")
        assert (4, 14, 18, "`edge` has 3 columns, not 2") in await editor.errors("main.dl")

    talk(tmp_path, conversation)


def test_a_file_that_is_closed_is_as_it_is_on_disk(tmp_path: Path) -> None:
    (tmp_path / "edges.dl").write_text(EDGES)

    async def conversation(editor: Editor) -> None:
        editor.open("main.dl", MAIN)
        assert await editor.errors("main.dl") == []
        editor.open("edges.dl", EDGES.replace("edge(from", "edgy(from"))
        assert await editor.errors("main.dl") != []
        editor.change("edges.dl", "")
        editor.close("edges.dl")
        assert await editor.errors("edges.dl") == []
        assert await editor.errors("main.dl") == []
        assert editor.messages == []

    talk(tmp_path, conversation)


def test_names(tmp_path: Path) -> None:
    (tmp_path / "edges.dl").write_text(EDGES)

    async def conversation(editor: Editor) -> None:
        ask = editor.client
        editor.texts["edges.dl"] = EDGES
        editor.open("main.dl", MAIN)
        place = editor.at("main.dl", "edge(b", 2)
        assert editor.shown(await ask.text_document_definition_async(lsp.DefinitionParams(**place))) == [
            ("edges.dl", 1, "edge")
        ]
        everywhere = lsp.ReferenceContext(include_declaration=True)
        uses = await ask.text_document_references_async(lsp.ReferenceParams(context=everywhere, **place))
        assert editor.shown(uses) == [
            ("edges.dl", 1, "edge"),
            ("main.dl", 4, "edge"),
            ("main.dl", 5, "edge"),
            ("edges.dl", 2, "edge"),
        ]
        target = editor.at("main.dl", '"edges.dl"', 3)
        assert editor.shown(await ask.text_document_definition_async(lsp.DefinitionParams(**target))) == [
            ("edges.dl", 0, "")
        ]

        async def hover(text: str) -> str:
            reply = await ask.text_document_hover_async(lsp.HoverParams(**editor.at("main.dl", text)))
            assert reply is not None and isinstance(reply.contents, lsp.MarkupContent)
            return reply.contents.value

        assert await hover("path(a, c)") == (
            "```datalog\n.decl path(from: node, to: node)\n```\nthere is a way\n\n- {a} leads to {b}."
        )
        assert await hover("a, c") == "```datalog\na: node\n```\n\n`node`: a place of the graph"
        symbols = await ask.text_document_document_symbol_async(
            lsp.DocumentSymbolParams(place["text_document"])
        )
        assert [symbol.name for symbol in symbols or ()] == ["path"]

    talk(tmp_path, conversation)


def test_renaming(tmp_path: Path) -> None:
    (tmp_path / "edges.dl").write_text(EDGES)

    async def conversation(editor: Editor) -> None:
        editor.texts["edges.dl"] = EDGES
        editor.open("main.dl", MAIN)

        async def renamed(text: str, to: str) -> dict[str, str]:
            place = editor.at("main.dl", text)
            edit = await editor.client.text_document_rename_async(lsp.RenameParams(new_name=to, **place))
            assert edit is not None and edit.changes is not None
            found = {}
            for uri, edits in edit.changes.items():
                name = uri.rsplit("/", 1)[1]
                lines = editor.texts[name].split("\n")
                for e in sorted(edits, key=lambda e: (e.range.start.line, -e.range.start.character)):
                    line, start, end = e.range.start.line, e.range.start.character, e.range.end.character
                    assert isinstance(e, lsp.TextEdit)
                    lines[line] = lines[line][:start] + e.new_text + lines[line][end:]
                found[name] = "\n".join(lines)
            return found

        assert await renamed("edge(b", "link") == {
            "main.dl": MAIN.replace("edge(", "link("),
            "edges.dl": EDGES.replace("edge(", "link("),
        }
        # A variable: in its rule, and in the sentence of it.
        assert await renamed("a, b) :-", "x") == {
            "main.dl": MAIN.replace("{a}", "{x}").replace("path(a, b) :- edge(a", "path(x, b) :- edge(x")
        }
        for text, to, why in [
            ("a, c", "b", "there is a variable `b` already"),
            ("path(a", "count", "`count` cannot be the name of a relation"),
            ("path(a", "edge", "there is a relation `edge` already"),
        ]:
            with pytest.raises(JsonRpcException, match=why):
                await renamed(text, to)

    talk(tmp_path, conversation)


def test_completion_and_layout(tmp_path: Path) -> None:
    async def conversation(editor: Editor) -> None:
        text = ".type node <: number\n.decl edge(from: node, to: no)\nedge(x, y) :- e\n.in\n.input ed\n"
        editor.open("a.dl", text)

        async def words(text: str) -> list[str]:
            place = editor.at("a.dl", text, len(text))
            reply = await editor.client.text_document_completion_async(lsp.CompletionParams(**place))
            assert isinstance(reply, list | tuple)
            return [item.label for item in reply]

        assert (await words(":- e"))[:3] == ["x", "y", "edge"]
        assert await words("to: no") == ["node", "number", "symbol", "unsigned", "float"]
        assert ".include" in await words("\n.in")
        assert await words(".input ed") == ["edge"]

        options = lsp.FormattingOptions(4, True)
        document = lsp.TextDocumentIdentifier(editor.uri("a.dl"))
        editor.change("a.dl", "edge( 1,2 ).")
        edits = await editor.client.text_document_formatting_async(
            lsp.DocumentFormattingParams(document, options)
        )
        assert [edit.new_text for edit in edits or ()] == ["edge(1, 2).\n"]

    talk(tmp_path, conversation)


EINSUM = """/// The heads are apart.
@flash: b s (g h) d, b t g d -> b s (g h) d {h=4} reduction={t}
elementwise_op("my.gelu").
"""


def test_einsum_notation(tmp_path: Path) -> None:
    async def conversation(editor: Editor) -> None:
        ask = editor.client
        editor.open("a.rules", EINSUM)
        assert await editor.errors("a.rules") == []
        reply = await ask.text_document_hover_async(lsp.HoverParams(**editor.at("a.rules", "t g")))
        assert reply is not None and isinstance(reply.contents, lsp.MarkupContent)
        assert reply.contents.value == "`t`: reduction"
        place = editor.at("a.rules", "h)")
        edit = await ask.text_document_rename_async(lsp.RenameParams(new_name="heads", **place))
        assert edit is not None and edit.changes is not None
        assert len(edit.changes[editor.uri("a.rules")]) == 3
        place = editor.at("a.rules", "elementwise_op")
        definition = await ask.text_document_definition_async(lsp.DefinitionParams(**place))
        assert [name for name, _, _ in editor.shown(definition)] == ["schema.dl"]
        assert (RULES / "ops/schema.dl").exists()
        with pytest.raises(JsonRpcException, match="a name of the rules that come with shardlog"):
            await ask.text_document_rename_async(lsp.RenameParams(new_name="unary_op", **place))
        place = editor.at("a.rules", "reduction")
        completion = await ask.text_document_completion_async(lsp.CompletionParams(**place))
        assert isinstance(completion, list | tuple)
        assert {"b", "s", "g", "h", "d", "t", "reduction"} <= {item.label for item in completion}
        editor.change("a.rules", EINSUM.replace("{t}", "{u}") + "my.op: i\n  -> i i\n")
        assert await editor.errors("a.rules") == [
            (1, 61, 62, "no operand or result has a factor u"),
            (3, 0, 2, "factor i is used twice in one operand or result"),
        ]

    talk(tmp_path, conversation)


def test_op_rules_are_checked_with_those_of_shardlog(tmp_path: Path) -> None:
    async def conversation(editor: Editor) -> None:
        editor.open("ops.dl", 'along(s, 0, t, 0) :- op(s, "my.op"), slot(s, t, "operant", _, _).\n')
        ((line, column, _, message),) = await editor.errors("ops.dl")
        assert (line, column) == (0, 48) and "operant" in message

    talk(tmp_path, conversation)


def test_without_the_extra(tmp_path: Path) -> None:
    (tmp_path / "pygls.py").write_text("raise ImportError('no pygls')\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import shardlog.cli as c; c.main(['lsp'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == "  hint: pip install 'shardlog[lsp]'"
