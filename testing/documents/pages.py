# SPDX-License-Identifier: BSD-2-Clause
"""The content of a Markdown page by CommonMark (with tables): fenced blocks, headings, links, tables."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]

_PARSER = MarkdownIt("commonmark").enable("table")
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


@dataclass(frozen=True)
class Block:
    """A block of code."""

    line: int
    """The line of the page at which the text begins; the first line is 1."""
    language: str
    """The first word after the fence, or empty."""
    options: str
    """The text after that word."""
    text: str


@dataclass(frozen=True)
class Link:
    """A link or an image."""

    line: int
    target: str


class Page:
    """A page, parsed."""

    def __init__(self, name: str, text: str) -> None:
        """Parse ``text``; ``name`` is the path from the top folder."""
        self.name = name
        self._tokens = _PARSER.parse(text)

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of code in order. An indented one has no language."""
        for token in self._tokens:
            if token.type in {"fence", "code_block"}:
                language, _, options = token.info.strip().partition(" ")
                fences = 1 if token.type == "fence" else 0
                yield Block(_line(token) + fences, language, options.strip(), token.content)

    def links(self) -> Iterator[Link]:
        """Yield the links and images of all paragraphs, headings and tables."""
        for token in self._tokens:
            for child in token.children or ():
                target = child.attrGet("href") or child.attrGet("src")
                if target is not None:
                    yield Link(_line(token), str(target))

    def anchors(self) -> set[str]:
        """Return the headings' anchors as GitHub makes them."""
        seen: Counter[str] = Counter()
        anchors = set()
        for opening, heading in zip(self._tokens, self._tokens[1:], strict=False):
            if opening.type == "heading_open":
                plain = "".join(child.content for child in heading.children or ())
                anchor = _NOT_IN_ANCHORS.sub("", plain.lower()).replace(" ", "-")
                anchors.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
                seen[anchor] += 1
        return anchors

    def tables(self) -> Iterator[list[list[str]]]:
        """Yield the tables: rows of cells as they are written, the header first."""
        rows: list[list[str]] = []
        for token in self._tokens:
            match token.type:
                case "table_open":
                    rows = []
                case "tr_open":
                    rows.append([])
                case "inline" if token.level and rows:
                    rows[-1].append(token.content)
                case "table_close":
                    yield rows
                    rows = []
                case _:
                    pass


def load(name: str) -> Page:
    """Read the page at the path ``name`` from the top folder."""
    return Page(name, (ROOT / name).read_text(encoding="utf-8"))


def sources() -> Sequence[str]:
    """Return the paths of all files of this checkout that are, or would be, under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def names() -> Sequence[str]:
    """Return the paths of all pages for people; golden files of tests are not pages."""
    return [name for name in sources() if name.endswith(".md") and "golden" not in Path(name).parts]


def _line(token: Token) -> int:
    return token.map[0] + 1 if token.map else 0
