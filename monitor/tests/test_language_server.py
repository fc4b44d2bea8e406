# SPDX-License-Identifier: BSD-2-Clause
"""``shai policy lsp`` with a client that others have written: pygls.

The client reads and checks every answer by the types of the protocol's specification (lsprotocol).
"""

from __future__ import annotations

import asyncio
import textwrap
from typing import TYPE_CHECKING

import pytest_asyncio
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from monitor.tests.diaries import SHAI

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

FRIENDS = """\
policy friends(owner) {
  read :- sKeyIs(owner).
  read :- sKeyIs(K), concat(F, "friends/", owner), F says friend(K).
}
"""
COMPOSED = """\
policy composed(who) includes friends(who) {
  update :- sKeyIs(who).
}
"""
TEXT_BEGINS, INDENTED = 5, 4  # where manifest puts a text


def manifest(name: str, text: str) -> str:
    """Return a manifest with a policy."""
    block = textwrap.indent(text, " " * INDENTED)
    return f"apiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {{name: {name}}}\nspec:\n  text: |\n{block}"


class Editor:
    """A client, and the directory in which it edits."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.client = LanguageClient("shai-tests", "1")
        self.found: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

        def published(params: types.PublishDiagnosticsParams) -> None:
            self.found.put_nowait(params)

        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(published)

    def uri(self, name: str) -> str:
        return (self.directory / name).as_uri()

    def at(
        self, line: int, character: int, name: str = "friends.pol"
    ) -> tuple[types.TextDocumentIdentifier, types.Position]:
        return types.TextDocumentIdentifier(self.uri(name)), types.Position(line, character)

    async def show(self, name: str, text: str) -> list[types.Diagnostic]:
        """Open a file, and return what is found in it."""
        item = types.TextDocumentItem(self.uri(name), "shai", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.diagnostics(name)

    async def end(self) -> int:
        """End the server as the protocol says, and return its exit code."""
        server = self.client._server  # noqa: SLF001 - how it ended is told to nobody else
        assert server is not None
        await self.client.shutdown_async(None)
        self.client.exit(None)
        async with asyncio.timeout(60):
            code: int = await server.wait()
        await self.client.stop()  # type: ignore[no-untyped-call]  # pygls declares no result
        return code

    async def diagnostics(self, name: str) -> list[types.Diagnostic]:
        async with asyncio.timeout(60):
            while True:
                published = await self.found.get()
                if published.uri == self.uri(name):
                    return list(published.diagnostics)


@pytest_asyncio.fixture
async def editor(tmp_path: Path) -> AsyncIterator[Editor]:
    made = Editor(tmp_path)
    await made.client.start_io(str(SHAI), "policy", "lsp")
    await made.client.initialize_async(types.InitializeParams(types.ClientCapabilities(), root_uri=tmp_path.as_uri()))
    made.client.initialized(types.InitializedParams())
    yield made
    if not made.client.stopped:
        await made.end()


async def test_mistakes_are_shown_until_they_are_corrected(editor: Editor) -> None:
    found = await editor.show("friends.pol", FRIENDS.replace("friend(K)", "friend(Q)"))
    places = {(one.code, one.severity, one.range.start.line) for one in found}
    assert ("variable-used-once", types.DiagnosticSeverity.Error, 2) in places
    change = types.TextDocumentContentChangeWholeDocument(FRIENDS)
    document = types.VersionedTextDocumentIdentifier(version=2, uri=editor.uri("friends.pol"))
    editor.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
    assert await editor.diagnostics("friends.pol") == []


async def test_hover_completion_and_definition(editor: Editor) -> None:
    (editor.directory / "friends.pol").write_text(FRIENDS)
    assert await editor.show("friends.pol", FRIENDS) == []
    assert await editor.show("composed.pol", COMPOSED) == []
    hover = await editor.client.text_document_hover_async(types.HoverParams(*editor.at(1, 12)))
    assert hover is not None
    assert "sKeyIs" in str(hover.contents)
    completion = await editor.client.text_document_completion_async(types.CompletionParams(*editor.at(1, 12)))
    items = completion.items if isinstance(completion, types.CompletionList) else completion
    assert items is not None
    assert "sKeyIs" in {item.label for item in items}
    included = COMPOSED.splitlines()[0].index("friends(")
    definition = await editor.client.text_document_definition_async(
        types.DefinitionParams(*editor.at(0, included, "composed.pol"))
    )
    locations = definition if isinstance(definition, (list, tuple)) else [definition]
    assert [(one.uri, one.range.start.line) for one in locations if isinstance(one, types.Location)] == [
        (editor.uri("friends.pol"), 0)
    ]


async def test_a_parameter_is_renamed_in_its_policy_only(editor: Editor) -> None:
    assert await editor.show("friends.pol", FRIENDS) == []
    document, at = editor.at(0, 17)
    edit = await editor.client.text_document_rename_async(types.RenameParams(document, at, "holder"))
    assert edit is not None
    assert edit.changes is not None
    assert applied(FRIENDS, edit.changes[editor.uri("friends.pol")]) == FRIENDS.replace("owner", "holder")


async def test_formatting(editor: Editor) -> None:
    untidy = FRIENDS.replace("  read", "read ").replace(", ", ",")
    assert await editor.show("friends.pol", untidy) == []
    edits = await editor.client.text_document_formatting_async(
        types.DocumentFormattingParams(
            types.TextDocumentIdentifier(editor.uri("friends.pol")), types.FormattingOptions(2, insert_spaces=True)
        )
    )
    assert edits
    assert applied(untidy, edits) == FRIENDS
    assert not (editor.directory / "friends.pol").exists()  # the server writes no file


async def test_policies_in_manifests(editor: Editor) -> None:
    """Diagnostics, hover and definition stand where the text does in the YAML file."""
    (editor.directory / "friends.yaml").write_text(manifest("friends", FRIENDS))
    assert await editor.show("composed.yaml", manifest("composed", COMPOSED)) == []
    found = await editor.show("friends.yaml", manifest("friends", FRIENDS.replace("friend(K)", "friend(Q)")))
    line = TEXT_BEGINS + 2
    begins = FRIENDS.splitlines()[2].index("friend(K)") + len("friend(")
    assert ("variable-used-once", line, INDENTED + begins) in {
        (one.code, one.range.start.line, one.range.start.character) for one in found
    }
    included = INDENTED + COMPOSED.splitlines()[0].index("friends(")
    at = editor.at(TEXT_BEGINS, included, "composed.yaml")
    hover = await editor.client.text_document_hover_async(types.HoverParams(*at))
    assert hover is None  # what it includes has a mistake
    assert await editor.show("friends.yaml", manifest("friends", FRIENDS)) == []
    hover = await editor.client.text_document_hover_async(types.HoverParams(*at))
    assert hover is not None
    assert "F says friend(K)" in str(hover.contents)
    definition = await editor.client.text_document_definition_async(types.DefinitionParams(*at))
    locations = definition if isinstance(definition, (list, tuple)) else [definition]
    assert [(one.uri, one.range.start.line) for one in locations if isinstance(one, types.Location)] == [
        (editor.uri("friends.yaml"), TEXT_BEGINS)
    ]


async def test_the_server_ends_when_it_is_told_to(editor: Editor) -> None:
    assert await editor.end() == 0


def applied(text: str, edits: Sequence[types.TextEdit]) -> str:
    """Apply edits, from the last to the first."""
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:n])) for n in range(len(lines) + 1)]

    def offset(at: types.Position) -> int:
        return starts[at.line] + at.character  # the texts are ASCII

    for edit in sorted(edits, key=lambda one: offset(one.range.start), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text
