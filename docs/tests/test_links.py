# SPDX-License-Identifier: BSD-2-Clause
"""Links between pages, and from pages to files, have existing targets."""

from pathlib import PurePosixPath
from posixpath import normpath
from urllib.parse import unquote, urlsplit

import pytest

from testing.documents import pages
from testing.documents.pages import Page


def problem(page: Page, target: str) -> str | None:
    """Return what is wrong with a link of ``page``, or None. Links to other sites are not checked."""
    parts = urlsplit(target)
    if parts.scheme:
        return None
    name = normpath(PurePosixPath(page.name).parent / unquote(parts.path)) if parts.path else page.name
    if not (pages.ROOT / name).exists():
        return f"there is no {name}"
    if parts.fragment and parts.fragment not in pages.load(name).anchors():
        return f"{name} has no heading #{parts.fragment}"
    return None


@pytest.mark.parametrize("name", pages.names())
def test_links_lead_somewhere(name: str) -> None:
    page = pages.load(name)
    found = [(link, problem(page, link.target)) for link in page.links()]
    assert not [f"{name}:{link.line}: {link.target}: {wrong}" for link, wrong in found if wrong]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("wire.md", None),
        ("../README.md#try-it", None),
        ("https://example.org/nowhere", None),
        ("nowhere.md", "there is no docs/nowhere.md"),
        ("wire.md#nowhere", "docs/wire.md has no heading #nowhere"),
        ("#nowhere", "docs/guide.md has no heading #nowhere"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(target: str, expected: str | None) -> None:
    assert problem(pages.load("docs/guide.md"), target) == expected
