"""Modules in an editor: errors, and why the value at a place is sharded as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import shardlog
from lsprotocol import types as lsp
from shardlog.authoring.editing.modules import hover, problems, uses

from .test_lsp import Editor, talk

MODULE = """sdy.mesh @mesh = <["x"=2, "y"=4]>
// %none of these "%is" a value
func.func @main(%batch: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8x8xf32> {
  %7 = stablehlo.dot %batch, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = func.call @twice(%7) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}
func.func private @twice(%0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c = stablehlo.constant dense<2.0> : tensor<8x8xf32>
  %1 = stablehlo.multiply %0, %c : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "m.mlir"
    path.write_text(MODULE)
    return path


def said(path: Path, place: str, text: str = MODULE) -> str:
    reply = hover(path, text, text.index(place) + 1)
    assert reply is not None
    start, end, answer = reply
    assert text[start:end] == place.split()[0].rstrip(",):")
    return answer


def test_values_in_a_text() -> None:
    assert [use.name for use in uses(MODULE)][:5] == ["%batch", "%w", "%7", "%batch", "%w"]
    assert {use.function for use in uses(MODULE)} == {"main", "twice"}


def test_a_value_is_found_by_its_place(module: Path) -> None:
    # MLIR calls %7 "%0"; the function @twice has a %0 of its own.
    text = said(module, "%7 = ")
    assert text.startswith("`%0 : tensor<8x8xf32>`  \n**[{x}, {}]**")
    assert 'dim 0 is sharded on "x"' in text
    assert "annotated %arg0 <@mesh" in text
    assert said(module, "%0: tensor").startswith("`@twice:%arg0 : tensor<8x8xf32>`")
    assert said(module, "%1 = ").startswith("`@twice:%0 : tensor<8x8xf32>`")


def test_collectives_are_named(module: Path) -> None:
    gather = "- **all-gather 0 over x: 128 bytes for operand 1 of stablehlo.dot**"
    assert gather in said(module, "%w: ")


def test_what_is_no_value_has_no_answer(module: Path) -> None:
    assert hover(module, MODULE, MODULE.index("sdy.mesh")) is None
    assert hover(module, MODULE, MODULE.index("%none")) is None


def test_a_saved_run_answers_for_its_module(module: Path) -> None:
    shardlog.run(module, annotate='%arg0=[{}, {"y"}]').save(module.with_suffix(".shardlog"))
    assert "**[{}, {y}]**" in said(module, "%batch: ")
    changed = MODULE.replace("dense<2.0>", "dense<3.0>")
    assert "**[{x}, {}]**" in said(module, "%batch: ", changed)
    os.utime(module, (2**31, 2**31))  # later than the run
    module.write_text(changed + "\n")
    os.utime(module, (2**31, 2**31))
    assert "**[{x}, {}]**" in said(module, "%batch: ", changed + "\n")


def test_problems(module: Path) -> None:
    assert problems(module, MODULE) == []
    (problem,) = problems(module, MODULE.replace("return %3 ", "return %5 "))
    assert (problem.line, problem.column, problem.message) == (6, 9, "use of undeclared SSA value name")


def test_the_server_answers(tmp_path: Path) -> None:
    async def conversation(editor: Editor) -> None:
        editor.open("m.mlir", MODULE)
        assert await editor.errors("m.mlir") == []
        place = editor.at("m.mlir", "%7 = ", 1)
        reply = await editor.client.text_document_hover_async(lsp.HoverParams(**place))
        assert "**[{x}, {}]**" in reply.contents.value
        assert (reply.range.start.line, reply.range.start.character) == (4, 2)
        editor.change("m.mlir", MODULE.replace("%3 : ", "%5 : "))
        ((line, *_, message),) = await editor.errors("m.mlir")
        assert (line, message) == (6, "use of undeclared SSA value name")
        reply = await editor.client.text_document_hover_async(lsp.HoverParams(**place))
        assert "error" in reply.contents.value
        client, document = editor.client, place["text_document"]
        options = lsp.FormattingOptions(2, True)
        assert not await client.text_document_formatting_async(
            lsp.DocumentFormattingParams(document, options)
        )
        assert not await client.text_document_completion_async(lsp.CompletionParams(**place))
        assert not await client.text_document_definition_async(lsp.DefinitionParams(**place))
        assert editor.messages == []

    talk(tmp_path, conversation)
