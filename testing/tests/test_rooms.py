# SPDX-License-Identifier: BSD-2-Clause
"""Rooms (top-level folders) use each other only as the table in CONTRIBUTING.md allows, in every language."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
_PYTHON_PACKAGES = {"shai_operator": "operator"}
"""Packages whose names differ from their rooms'."""
_TESTS = ("tests", "testdata", "conftest.py")
_FOR_ALL = {"scripts"}
_GO_MODULES = ("monitor", "devcluster", "devcluster/tools", "freebsd/init")


def cells(row: list[str]) -> tuple[str, set[str]]:
    """Return a row's room, and the rooms that its last column names in code spans."""
    spans = re.compile(r"`([a-z]+)/[^`]*`")
    return spans.findall(row[0])[0], set(spans.findall(row[-1]))


@pytest.fixture(scope="module")
def allowed() -> dict[str, set[str]]:
    """Read the table of rooms: the dependencies that each may have."""
    tokens = MarkdownIt().enable("table").parse((ROOT / "CONTRIBUTING.md").read_text())
    rows: list[list[str]] = []
    inside = False
    for position, token in enumerate(tokens):
        if token.type == "heading_open":
            inside = tokens[position + 1].content == "Layout"
        elif inside and token.type == "tr_open":
            rows.append([])
        elif inside and token.type == "inline" and rows:
            rows[-1].append(token.content)
        elif inside and token.type == "table_close":
            break
    return dict(cells(row) for row in rows[1:])


def tracked(*patterns: str) -> list[Path]:
    """Return the files that git tracks, by patterns."""
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [Path(name) for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def rooms() -> set[str]:
    return {path.parts[0] for path in tracked() if len(path.parts) > 1} - {".ci"}


def python_uses() -> set[tuple[str, str]]:
    """Return which room's Python code imports which other's; tests may also import the rooms for tests."""
    used = set()
    known = rooms()
    for path in tracked("*.py"):
        imported = set()
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.Import):
                imported |= {name.name.split(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                imported.add(node.module.split(".")[0])
        of_tests = set(path.parts) & set(_TESTS)
        for name in imported:
            room = _PYTHON_PACKAGES.get(name, name)
            # import operator is Python's own module:
            if room in known and name not in sys.stdlib_module_names and not (of_tests and room == "testing"):
                used.add((path.parts[0], room))
    return used


def go_uses() -> set[tuple[str, str]]:
    """Return which Go module imports which other module of this project."""
    used = set()
    for module in _GO_MODULES:
        listed = subprocess.run(
            ["go", "list", "-test", "-json=Imports,TestImports,XTestImports,Module", "./..."],
            cwd=ROOT / module, capture_output=True, text=True, check=True,
        )  # fmt: skip
        decoder, text = json.JSONDecoder(), listed.stdout.strip()
        while text:
            package, end = decoder.raw_decode(text)
            text = text[end:].lstrip()
            for kind in ("Imports", "TestImports", "XTestImports"):
                for name in package.get(kind) or ():
                    if name.startswith("shai.dev/"):
                        used.add((module.split("/")[0], name.split("/")[1]))
    return used


def c_uses() -> set[tuple[str, str]]:
    """Return which room's C code includes which other room's headers."""
    headers: dict[str, set[str]] = {}
    for path in tracked("*.h"):
        headers.setdefault(path.name, set()).add(path.parts[0])
    used = set()
    for path in tracked("*.c", "*.h"):
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', (ROOT / path).read_text(), re.MULTILINE):
            owners = headers.get(Path(name).name, set())
            if owners and path.parts[0] not in owners:
                used |= {(path.parts[0], owner) for owner in owners}
    return used


def make_uses() -> set[tuple[str, str]]:
    """Return which room's makefiles name which other room's folders."""
    used = set()
    names = "|".join(sorted(rooms()))
    for path in tracked("*/Makefile", "*/GNUmakefile"):
        text = re.sub(r"(?m)^\s*#.*", "", (ROOT / path).read_text())
        for name in re.findall(rf"(?:\$\(TOP\)|\.\.)/({names})\b", text):
            used.add((path.parts[0], name))
    return used


def test_the_table_has_every_room(allowed: dict[str, set[str]]) -> None:
    assert set(allowed) == rooms()


@pytest.mark.parametrize("uses", [python_uses, go_uses, c_uses, make_uses], ids=["python", "go", "c", "make"])
def test_rooms_use_each_other_as_the_table_says(
    allowed: dict[str, set[str]], uses: Callable[[], set[tuple[str, str]]]
) -> None:
    found = {(room, used) for room, used in uses() if room != used and used not in _FOR_ALL}
    beyond = {(room, used) for room, used in found if used not in allowed.get(room, set())}
    assert not beyond, f"CONTRIBUTING.md does not let these rooms use those: {sorted(beyond)}"


def test_what_the_languages_use_is_found() -> None:
    """The scans find dependencies that are known to exist: an empty scan would prove nothing."""
    assert ("demo", "loadgen") in python_uses()
    assert ("monitor", "monitor") in go_uses()
    assert ("syse", "runtime") in c_uses()
    assert ("freebsd", "kernel") in make_uses()
